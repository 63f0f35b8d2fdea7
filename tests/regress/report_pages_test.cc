// The reports on this room's findings: histories with their changes, and a gate's answer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "regress/gate_forms.h"
#include "regress/history.h"
#include "report/report.h"
#include "tests/regress/nights.h"

namespace ridgeline::regress {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

report::Report Shipped(const std::string& name) {
  return report::LoadReportFolder(std::filesystem::path(RIDGELINE_SOURCE_DIR) / "reports" / name);
}

class ReportPages : public ::testing::Test {
 protected:
  // Nights of two points, with a new build every two nights, slower from one night on.
  void AddNights(int nights, int slower_from) {
    for (int i = 1; i <= nights; ++i) {
      nights_.Add("night-" + std::to_string(i), [&](const Point& point) {
        return testing::Timed(point, testing::ThreeRuns(i >= slower_from ? 105 : 100),
                              std::to_string(10 + (i - 1) / 2) + std::string(38, 'a'));
      });
    }
  }
  Json RowsOf(const std::string& report, const report::RenderOptions& options = {"", report::ReportFormat::kJson}) {
    return ParseJson(report::Render(Shipped(report), store_, options).bytes, report);
  }

  TempDir dir_;
  store::Store store_ = store::Store::Open(dir_ / "ridgeline.db", store::Store::Mode::kReadWrite);
  testing::Nights nights_{store_};
};

TEST_F(ReportPages, AHistoryHasTheChangesThatHistoryFinds) {
  AddNights(20, 13);
  const Table found = HistoryTable(ReadMeasurements(store_, {}), true);
  ASSERT_EQ(found.rows.size(), 2U) << "a change of each point";
  const Json history = RowsOf("history");
  ASSERT_EQ(history.at("rows").size(), 40U);
  EXPECT_EQ(history.at("panels").size(), 2U);
  std::vector<std::string> changed;
  for (const Json& row : history.at("rows")) {
    if (row.at("step_change").is_null()) continue;
    changed.push_back(row.at("campaign"));
    EXPECT_EQ(row.at("commit"), CellText(found.rows[0][1]));
    EXPECT_NEAR(row.at("step_change_percent").get<double>(), 100 * std::get<double>(found.rows[0][5]), 1e-9);
    EXPECT_EQ(row.at("step_change"), "slower");
  }
  EXPECT_THAT(changed, ElementsAre("night-13", "night-13"));
  EXPECT_EQ(history.at("rows").at(0).at("campaign"), "night-20") << "the newest first";
  EXPECT_EQ(history.at("panels").at(0).at("conclusion").at(0),
            "Step time changed by +5.0\xC2\xA0% with 16aaaaaaaaaa, measured 2023-11-14 22:13.");
  const std::string html = report::Render(Shipped("history"), store_, {"", report::ReportFormat::kHtml}).bytes;
  EXPECT_THAT(html, HasSubstr("<title>5.0 % slower</title>"));
  EXPECT_THAT(html, HasSubstr("40 measurements in 2 panels: 40 ok."));
}

TEST_F(ReportPages, AHistoryOfOneCommitDatesAChangeToItsNight) {
  for (int i = 1; i <= 16; ++i) nights_.Add("night-" + std::to_string(i), i >= 9 ? 130 : 100);
  std::vector<std::string> changed;
  const Json history = RowsOf("history");
  for (const Json& row : history.at("rows")) {
    if (!row.at("step_change").is_null()) changed.push_back(row.at("campaign"));
  }
  EXPECT_THAT(changed, ElementsAre("night-9", "night-9")) << "a machine changes, too";
}

TEST_F(ReportPages, AHistoryBeginsWithTheSecondMeasurement) {
  AddNights(1, 9);
  EXPECT_EQ(RowsOf("history").at("rows").size(), 0U);
  EXPECT_THAT(report::Render(Shipped("history"), store_, {"", report::ReportFormat::kMarkdown}).bytes,
              HasSubstr("A history begins with the second night"));
  nights_.Add("night-2", [](const Point& point) {
    RunResult result = testing::Timed(point, testing::ThreeRuns(100));
    if (point.spec.seed == 1) return result;
    result.status = RunStatus::kCrashed;
    return result;
  });
  const Json history = RowsOf("history");
  ASSERT_EQ(history.at("rows").size(), 4U);
  EXPECT_EQ(history.at("rows").at(0).at("place"), 2);
}

TEST_F(ReportPages, AGatesAnswerIsAPageWithTheWorstFirst) {
  Gate gate;
  gate.head = "night-22";
  gate.baseline = "night-*";
  gate.answer = GateAnswer::kRegressed;
  GateFinding slow;
  slow.metric = GateMetric::kStepTime;
  slow.answer = GateAnswer::kRegressed;
  slow.point = "batch_size=1<script>";
  slow.words = "measured again in turns: slower in two rounds";
  slow.base = 100e6;
  slow.head = 103e6;
  slow.base_runs = slow.head_runs = 12;
  slow.change = 0.03;
  slow.low = 0.02;
  slow.high = 0.04;
  slow.detectable = 0.012;
  GateFinding open = slow;
  open.answer = GateAnswer::kInconclusive;
  open.point = "batch_size=2";
  open.words = "4 runs of the 20 that a baseline takes";
  open.low.reset();
  open.high.reset();
  open.further_runs = 16;
  GateFinding fine = open;
  fine.answer = GateAnswer::kPass;
  fine.metric = GateMetric::kPeakMemory;
  fine.words.clear();
  fine.base = 1e9;
  fine.head = 1e9;
  fine.change = 0;
  fine.further_runs = 0;
  GateFinding gone;
  gone.answer = GateAnswer::kMissing;
  gone.point = "batch_size=4";
  gone.words = "no result in head: its node failed";
  gate.findings = {slow, gone, open, fine};
  report::RenderOptions options{"", report::ReportFormat::kJson};
  options.input = GateJson(gate);
  const Json page = RowsOf("regression", options);
  std::vector<std::string> panels;
  for (const Json& panel : page.at("panels")) panels.push_back(panel.at("title"));
  EXPECT_THAT(panels, ElementsAre("Step time of night-22, against night-*", StartsWith("Result of"),
                                  StartsWith("Peak memory of")));
  EXPECT_EQ(page.at("panels").at(0).at("conclusion").at(0), "Batch_size=1<script> regressed by +3.0\xC2\xA0%.");
  EXPECT_EQ(page.at("panels").at(1).at("conclusion").at(0),
            "Batch_size=4 is missing: no result in head: its node failed.");
  EXPECT_THAT(page.at("rows").at(1).at("note"), HasSubstr("16 more runs would decide"));
  options.format = report::ReportFormat::kHtml;
  const report::RenderedReport html = report::Render(Shipped("regression"), store_, options);
  EXPECT_EQ(html.counts, "4 findings in 3 panels: 1 REGRESSED, 1 INCONCLUSIVE, 1 MISSING, 1 PASS.");
  EXPECT_THAT(html.bytes, AllOf(Not(HasSubstr("<script>&")), HasSubstr("REGRESSED, batch_size=1&lt;script&gt;")));
  EXPECT_THAT(html.bytes, HasSubstr("+3.0\xC2\xA0% \xC2\xB1\xC2\xA0"
                                    "1.0\xC2\xA0%"));
  EXPECT_THAT(html.bytes, HasSubstr("class=\"error\"")) << "its interval";
  EXPECT_THAT(html.bytes, HasSubstr("r=\"4\" fill=\"#d1432b\"")) << "red";
}

TEST_F(ReportPages, WithoutAGateThePageSaysWhatToDo) {
  const std::string page = report::Render(Shipped("regression"), store_, {"", report::ReportFormat::kMarkdown}).bytes;
  EXPECT_THAT(page, HasSubstr("--input gate.json"));
  report::RenderOptions other{"", report::ReportFormat::kMarkdown};
  other.input = "{\"rows\": []}";
  EXPECT_EQ(report::Render(Shipped("regression"), store_, other).bytes, page) << "what is no gate is none";
  other.input = "no JSON";
  EXPECT_THROW(report::Render(Shipped("regression"), store_, other), Error);
}

}  // namespace
}  // namespace ridgeline::regress
