// A point with several measurements: the newest, all of them, and their spread.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "base/json.h"
#include "report/report.h"
#include "run/result.h"
#include "tests/base/temp_dir.h"
#include "tests/report/sample.h"

namespace ridgeline::report {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class RepeatsTest : public testing::Test {
 protected:
  RepeatsTest() {
    std::vector<Problem> problems;
    const RunSpec spec = BuildSpec({{"model", "llama-25m"}}, problems);
    points_ = {{PointId(spec), spec}};
    Measure({"default", DefaultSetup()}, 100, 1000);
    Measure({"night-2", DefaultSetup()}, 120, 2000);
    Measure({"default", SetupOf({"other.sh", "<b>"}, 0)}, 7, 3000);
    store_.PutSweep({"s", "", "s.yaml", "name: s\n", 1, {"night-2", DefaultSetup()}}, points_);
  }

  void Measure(const MeasurementKey& as, double tokens_per_s, int64_t ended_unix_ns) {
    store_.PutSweep({"s", "", "s.yaml", "name: s\n", 1, as}, points_);
    RunResult result;
    result.point_id = points_[0].id;
    result.status = RunStatus::kOk;
    result.device = "Example CPU";
    result.throughput = {tokens_per_s, tokens_per_s};
    result.step_ns.median_ns = 5;
    result.ended_unix_ns = ended_unix_ns;
    result.environment = {{"cpu", "Example CPU"}, {"version", as.campaign == "default" ? "1" : "2"}};
    store_.AddResults(std::vector<store::NewResult>{{result, "", 0, as}});
  }

  Json Rows(const RenderOptions& options) {
    RenderOptions json = options;
    json.format = ReportFormat::kJson;
    return ParseJson(Render(report_sample::ShippedReport(), store_, json).bytes, "a report").at("rows");
  }

  TempDir dir_;
  store::Store store_ = store::Store::Open(dir_ / "ridgeline.db", store::Store::Mode::kReadWrite);
  std::vector<Point> points_;
};

TEST_F(RepeatsTest, TheNewestOfEachTrainerIsShownWithTheSpread) {
  const Json rows = Rows({});
  ASSERT_EQ(rows.size(), 2U);
  const Json& engine = rows.at(0).at("campaign") == "night-2" ? rows.at(0) : rows.at(1);
  EXPECT_EQ(engine.at("steady_tokens_per_s"), 120);
  EXPECT_EQ(engine.at("times_measured"), 2);
  EXPECT_EQ(engine.at("steady_min_tokens_per_s"), 100);
  EXPECT_EQ(engine.at("steady_max_tokens_per_s"), 120);
  EXPECT_EQ(engine.at("version"), "2");
}

TEST_F(RepeatsTest, ASweepHasTheFiguresOfItsOwnTrainer) {
  const Json rows = Rows({"s"});
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows.at(0).at("steady_tokens_per_s"), 120);
}

TEST_F(RepeatsTest, AllAreShownWhereAskedFor) {
  RenderOptions options;
  options.all_measurements = true;
  EXPECT_EQ(Rows(options).size(), 3U);
  options.sweep = "s";
  EXPECT_EQ(Rows(options).size(), 2U);
  EXPECT_EQ(Rows({}).size(), 2U) << "it was asked for once";
  options.format = ReportFormat::kMarkdown;
  EXPECT_THAT(Render(report_sample::ShippedReport(), store_, options).bytes,
              AllOf(HasSubstr("Sweep s. Every measurement. 2 runs"), HasSubstr("| campaign night-2, version 2 |")));
}

TEST_F(RepeatsTest, ACampaignIsShownAlone) {
  RenderOptions options;
  options.campaign = "night-2";
  const Json rows = Rows(options);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows.at(0).at("steady_tokens_per_s"), 120);
  options.format = ReportFormat::kHtml;
  EXPECT_THAT(Render(report_sample::ShippedReport(), store_, options).bytes, HasSubstr("Campaign night-2. 1 run"));
  options.campaign = "night' OR 1=1 --";
  EXPECT_THROW(Render(report_sample::ShippedReport(), store_, options), Error);
  store_.ChooseRuns({false, options.campaign});
  EXPECT_TRUE(store_.Query("SELECT * FROM runs").rows.empty());
}

TEST_F(RepeatsTest, AReaderMayChooseToo) {
  store::Store reader = store::Store::Open(dir_ / "ridgeline.db", store::Store::Mode::kReadOnly);
  reader.ChooseRuns({true, ""});
  EXPECT_EQ(reader.Query("SELECT * FROM runs").rows.size(), 3U);
  EXPECT_EQ(store_.Query("SELECT * FROM runs").rows.size(), 2U) << "nobody else sees it";
  reader.ChooseRuns({});
  EXPECT_EQ(reader.Query("SELECT * FROM runs").rows.size(), 2U);
}

TEST_F(RepeatsTest, AnotherTrainerIsAnotherPanelAndItsNameIsEscaped) {
  RenderOptions options;
  options.format = ReportFormat::kHtml;
  EXPECT_THAT(Render(report_sample::ShippedReport(), store_, options).bytes,
              AllOf(HasSubstr("by other.sh &lt;b&gt;"), Not(HasSubstr("other.sh <b>"))));
}

}  // namespace
}  // namespace ridgeline::report
