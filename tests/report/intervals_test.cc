// Figures with their intervals, in every format, from the step times of the runs that a query names.
#include "report/intervals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "report/page.h"
#include "report/rows.h"

namespace ridgeline::report {
namespace {

using testing::HasSubstr;
using testing::Optional;

constexpr const char* kNear100 = "[900,100,101,99,100.5,102,98,103,101,99.5,104]";
constexpr const char* kNear150 = "[900,150,151,149,150.5,153,147,148,151.5,149.5,146]";

ReportColumn Column(const char* name, ValueStyle style, std::vector<std::string> steps_of) {
  ReportColumn column;
  column.name = column.label = name;
  column.style = style;
  column.steps_of = std::move(steps_of);
  return column;
}

Report Example() {
  Report report;
  report.name = "example";
  for (const ReportColumn& column :
       {Column("rate", ValueStyle::kNumber, {"result"}), Column("speedup", ValueStyle::kFactor, {"result", "other"}),
        Column("percent", ValueStyle::kSignedPercent, {"result", "other"})}) {
    report.columns.push_back(column);
    for (const ReportColumn& beside : IntervalColumns(column)) report.columns.push_back(beside);
  }
  return report;
}

// Three runs: the first two can be compared with the first; the third has no step times.
Table Answer() {
  const Cell none;
  const auto row = [&](int64_t result, const char* steps, double rate, double speedup, double percent) {
    return std::vector<Cell>{std::string("P"),
                             none,
                             std::string("measured"),
                             int64_t{0},
                             none,
                             none,
                             result,
                             int64_t{1},
                             std::string(steps),
                             int64_t{1},
                             int64_t{5},
                             int64_t{2},
                             rate,
                             speedup,
                             percent};
  };
  return {{"panel", "failure", "provenance", "emulated", "environment", "command", "result", "other", "all_steps_ns",
           "warmup_steps", "steps", "repeats", "rate", "speedup", "percent"},
          {row(1, kNear100, 10, 1, 0), row(2, kNear150, 15, 1.5, -33.3), row(3, "[]", 12, 1.2, 20)}};
}

TEST(Intervals, HoldTheFigure) {
  const Report report = Example();
  const Rows rows(report, Answer());
  for (const char* name : {"rate", "speedup", "percent"}) {
    const double value = *rows.Number(1, name);
    EXPECT_LT(*rows.Number(1, LowColumn(name)), value) << name;
    EXPECT_GT(*rows.Number(1, HighColumn(name)), value) << name;
  }
  EXPECT_EQ(rows.Text(1, "speedup_change"), "more");
  EXPECT_EQ(rows.Text(1, "percent_change"), "less");
  EXPECT_GT(*rows.Number(1, "speedup_more_repeats"), 0);
  EXPECT_LT(*rows.Number(1, "speedup_then_percent"), *rows.Number(1, "speedup_within_percent"));
  EXPECT_EQ(rows.Text(0, "speedup_change"), "") << "a run compared with itself says nothing";
}

TEST(Intervals, AFigureWithoutStepTimesHasNone) {
  const Report report = Example();
  const Rows rows(report, Answer());
  for (const char* name : {"rate_low", "rate_high", "speedup_low", "speedup_change", "percent_high"}) {
    EXPECT_EQ(rows.Text(2, name), "") << name;
  }
  EXPECT_EQ(FormatFigure(report.columns[0], rows, 2), "12");
}

TEST(Intervals, AreWrittenInTablesAndKeptInCsv) {
  const Report report = Example();
  const Rows rows(report, Answer());
  EXPECT_THAT(RenderMarkdown(report, rows, {}), HasSubstr("1.50\xC2\xA0\xC3\x97 \xC2\xB1\xC2\xA0"
                                                          "0."));
  EXPECT_THAT(RenderHtml(report, rows, {}), HasSubstr("33.3\xC2\xA0% \xC2\xB1\xC2\xA0"));
  EXPECT_THAT(RenderRows(report, Answer(), {.sweep = "", .format = ReportFormat::kCsv}).bytes,
              HasSubstr("rate,rate_low,rate_high,speedup,speedup_low,speedup_high,speedup_change,percent"));
}

TEST(Intervals, AreErrorBarsOfPlainBars) {
  const Report report = Example();
  const Rows rows(report, Answer());
  ReportChart chart;
  chart.title = "Rate";
  chart.label = "panel";
  chart.kind = ChartBars{{{"rate", {{"rate", "rate"}}, false}, {"stack", {{"a", "rate"}, {"b", "speedup"}}, false}}};
  const std::vector<size_t> panel = {0, 1, 2};
  const BarChart drawn = MakeChart(chart, rows, panel, "c");
  EXPECT_EQ(drawn.slots[1].bars[0].high, *rows.Number(1, "rate_high"));
  EXPECT_EQ(drawn.slots[1].bars[1].high, 0) << "of a stack's parts no one knows the whole's interval";
  EXPECT_EQ(drawn.slots[2].bars[0].high, 0);
  EXPECT_THAT(drawn.description, testing::ContainsRegex("rate 15 [(]14[.0-9]* to 15[.0-9]*[)]"));
}

TEST(Intervals, AQueryThatLacksWhatTheyNeedIsTold) {
  Table table = Answer();
  table.columns[8] = "all_steps";
  try {
    const Report report = Example();
    const Rows rows(report, std::move(table));
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.message(), HasSubstr("its query.sql lacks the column 'all_steps_ns', did you mean 'all_steps'?"));
  }
}

}  // namespace
}  // namespace ridgeline::report
