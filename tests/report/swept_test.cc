// The form for programs: one row per measurement, and a column for each field that differs, whatever a sweep varied.
#include "report/swept.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "run/measurement.h"
#include "tests/base/temp_dir.h"
#include "tests/report/sample.h"

namespace ridgeline::report {
namespace {

using report_sample::Runs;
using report_sample::ShippedReport;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class SweptTest : public ::testing::Test {
 protected:
  // A point of a sweep that has no result yet.
  void Plan(const Json& fields, const std::string& setup = DefaultSetup(), bool measured = true) {
    std::vector<Problem> problems;
    Json all = {{"model", "llama-10m"}};
    all.update(fields);
    RunSpec spec = BuildSpec(all, problems);
    spec.own = own_;
    const Point point = {PointId(spec), spec};
    const MeasurementKey as = {kDefaultCampaign, setup};
    store_.PutSweep({"s" + point.id + setup, "", "s.yaml", "name: s\n", 1, as}, std::vector<Point>{point});
    if (!measured) return;
    RunResult result;
    result.point_id = point.id;
    result.status = RunStatus::kOk;
    result.throughput = {100, 90};
    result.step_ns.median_ns = 5;
    result.ended_unix_ns = 1'764'150'000'000'000'000;  // 2025-11-26
    result.environment = {{"cpu", "Example CPU"}, {"cores", "2"}};
    store_.AddResults(std::vector<store::NewResult>{{result, "", 0, as}});
  }

  std::string Of(const std::string& report, ReportFormat format) {
    return Render(ShippedReport(report), store_, {"", format}).bytes;
  }

  TempDir dir_;
  store::Store store_ = store::Store::Open(dir_ / "ridgeline.db", store::Store::Mode::kReadWrite);
  std::map<std::string, FieldValue> own_;
};

TEST_F(SweptTest, AFieldThatDiffersIsAColumn) {
  Plan({{"grad_accumulation", 2}, {"learning_rate", 0.001}});
  Plan({{"grad_accumulation", 4}, {"learning_rate", 0.001}});
  Plan({{"grad_accumulation", 8}, {"learning_rate", 0.001}}, DefaultSetup(), /*measured=*/false);
  const Json rows = ParseJson(Of("sweep", ReportFormat::kJson), "a report").at("rows");
  ASSERT_EQ(rows.size(), 3U);
  std::vector<int64_t> steps;
  for (const Json& row : rows) {
    steps.push_back(row.at("grad_accumulation").get<int64_t>());
    EXPECT_FALSE(row.contains("learning_rate")) << "it is the same in all";
  }
  EXPECT_THAT(steps, ::testing::UnorderedElementsAre(2, 4, 8)) << "measured or not";
  const std::string csv = Of("sweep", ReportFormat::kCsv);
  EXPECT_THAT(csv.substr(0, csv.find("\r\n")), HasSubstr(",grad_accumulation,"));
  EXPECT_THAT(Of("sweep", ReportFormat::kMarkdown), Not(HasSubstr("| grad_accumulation"))) << "tables say it in words";
}

TEST_F(SweptTest, OwnFieldsAndSetupsAreColumns) {
  own_["compile"] = std::string("yes");
  Plan({{"seed", 1}}, SetupOf({"ridgeline-train"}, 2));
  own_["compile"] = std::string("no");
  Plan({{"seed", 1}}, SetupOf({"ridgeline-train"}, 4));
  for (const char* report : {"sweep", "activation-checkpointing", "precision", "memory"}) {
    const Json rows = ParseJson(Of(report, ReportFormat::kJson), "a report").at("rows");
    ASSERT_EQ(rows.size(), 2U) << report;
    EXPECT_NE(rows[0].at("own.compile"), rows[1].at("own.compile")) << report;
    EXPECT_NE(rows[0].at("setup.cpus"), rows[1].at("setup.cpus")) << report;
  }
}

TEST_F(SweptTest, TheHeadSaysWhenAndWhere) {
  Plan({{"seed", 1}});
  const std::string sentence = "Measured 2025-11-26 on Example CPU, 2 cores.";
  for (const ReportFormat format : {ReportFormat::kHtml, ReportFormat::kMarkdown, ReportFormat::kText}) {
    EXPECT_THAT(Of("sweep", format), HasSubstr(sentence));
  }
  EXPECT_EQ(ParseJson(Of("sweep", ReportFormat::kJson), "a report").at("measured"), sentence);
}

TEST_F(SweptTest, ATerminalHasTheKeyColumnsAsATable) {
  Plan({{"seed", 1}});
  const std::string text = Of("sweep", ReportFormat::kText);
  EXPECT_THAT(text, HasSubstr("\nPoint "));
  EXPECT_THAT(text, AllOf(HasSubstr("Throughput, tokens/s"), Not(HasSubstr("|")), Not(HasSubstr("Median step"))));
  EXPECT_THAT(text, HasSubstr("-o md has every column"));
}

}  // namespace
}  // namespace ridgeline::report
