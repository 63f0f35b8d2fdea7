// The shipped report over a fixed store, in every format; and the limits of a page with too much content.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "report/page.h"
#include "report/rows.h"
#include "tests/base/temp_dir.h"
#include "tests/report/readable.h"
#include "tests/report/sample.h"

namespace ridgeline::report {
namespace {

using report_sample::ExpectGolden;
using report_sample::FillSample;
using report_sample::Runs;
using report_sample::ShippedReport;
using report_sample::WithoutIds;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

class RenderTest : public testing::Test {
 protected:
  std::string Rendered(ReportFormat format, const std::string& sweep = "") {
    return Render(ShippedReport(), store_, {sweep, format}).bytes;
  }

  TempDir dir_;
  store::Store store_ = store::Store::Open(dir_ / "ridgeline.db", store::Store::Mode::kReadWrite);
};

TEST_F(RenderTest, TheSampleIsAsTheGoldensHaveIt) {
  FillSample(store_);
  ExpectGolden(WithoutIds(Rendered(ReportFormat::kHtml, "sample")), "sample.html");
  ExpectGolden(WithoutIds(Rendered(ReportFormat::kMarkdown, "sample")), "sample.md");
  ExpectGolden(WithoutIds(Rendered(ReportFormat::kCsv, "sample")), "sample.csv");
  ExpectGolden(WithoutIds(Rendered(ReportFormat::kJson, "sample")), "sample.json");
}

TEST_F(RenderTest, CountsRunsAndFailures) {
  FillSample(store_);
  const RenderedReport rendered = Render(ShippedReport(), store_, {});
  EXPECT_EQ(rendered.runs, 12);
  EXPECT_EQ(rendered.failed, 4);
  EXPECT_THAT(rendered.bytes, HasSubstr("12 runs in 3 panels: 8 ok, 4 failed."));
}

TEST_F(RenderTest, APanelBeginsWithItsAnswerInASentenceOverAChart) {
  FillSample(store_);
  const std::string html = Rendered(ReportFormat::kHtml, "sample");
  int answers = 0;
  const std::string open = "<p class=\"answer\">";
  for (size_t at = html.find(open); at != std::string::npos; at = html.find(open, at + 1)) {
    const size_t begin = at + open.size();
    const std::string answer = html.substr(begin, html.find("</p>", begin) - begin);
    EXPECT_LE(Words(answer), 20U) << answer;
    const size_t heading = html.rfind("</h2>\n", at);
    EXPECT_EQ(heading + 6, at) << answer;
    EXPECT_EQ(html.find("<figure", at), html.find("<div class=\"charts\">\n<figure class=\"full\"", at) + 21) << answer;
    ++answers;
  }
  EXPECT_EQ(answers, 3);
  // If a page has several panels, all answers come before the first panel.
  EXPECT_LT(html.find("gives 1.88"), html.find("</nav>"));
}

TEST_F(RenderTest, ATableFoldsToItsKeyColumns) {
  FillSample(store_);
  const std::string html = Rendered(ReportFormat::kHtml, "sample");
  EXPECT_THAT(html, HasSubstr("<input class=\"fold\" type=\"checkbox\" id=\"runs-1\" hidden=\"\"/>"
                              "<label class=\"fold\" for=\"runs-1\" hidden=\"\">all "));
  EXPECT_THAT(html, HasSubstr("<th scope=\"col\" align=\"right\" data-group=\"Throughput\" data-unit=\"tokens/s\""));
  EXPECT_THAT(html, HasSubstr("<th scope=\"col\" class=\"more\" align=\"right\" data-group=\"Step time\""));
  Report report = ShippedReport();
  for (ReportColumn& column : report.columns) column.key = false;
  EXPECT_THAT(Render(report, store_, {"sample", ReportFormat::kHtml}).bytes, Not(HasSubstr("class=\"more\"")))
      << "without a key column, all of them stay";
}

TEST_F(RenderTest, LinesOverAColumnGoThroughRunsAndMarkFailures) {
  Runs runs(store_);
  for (const char* policy : {"none", "full"}) {
    for (const int batch : {1, 2, 8}) {
      const bool fails = batch == 8 && policy == std::string("none");
      runs.Add({{"model", "llama-10m"}, {"batch_size", batch}, {"checkpointing", policy}},
               fails ? RunStatus::kOomHost : RunStatus::kOk);
    }
  }
  runs.Put("s");
  const Report report = ShippedReport();
  const Rows rows(report, store_.Query(report.sql));
  const std::vector<Panel> panels = MakePanels(rows);
  ASSERT_EQ(panels.size(), 1U);
  const ReportChart& chart = report.charts.at(2);
  const LineChart lines = MakeLineChart(report, chart, rows, panels[0].rows, "c");
  EXPECT_EQ(lines.at, (std::vector<double>{1, 2, 8}));
  EXPECT_EQ(lines.x_axis, "Batch");
  EXPECT_TRUE(lines.log_x);
  ASSERT_EQ(lines.lines.size(), 3U);
  EXPECT_EQ(lines.lines[0].legend, "none");
  ASSERT_EQ(lines.lines[0].points.size(), 2U);
  EXPECT_EQ(lines.lines[0].points[1].x, 2);
  EXPECT_EQ(lines.lines[1].legend, "full");
  EXPECT_EQ(lines.lines[1].points.size(), 3U);
  EXPECT_EQ(lines.lines[2].failure, "none, Batch 8: out of memory");
  EXPECT_EQ(lines.lines[2].colour, lines.lines[0].colour);
  // A single place gives no line.
  EXPECT_TRUE(MakeLineChart(report, chart, rows, std::span(panels[0].rows).first(2), "c").lines.empty());
}

TEST_F(RenderTest, ASweepShowsItsOwnPointsOnly) {
  Runs one(store_);
  one.Add({{"model", "llama-10m"}});
  one.Put("one");
  Runs other(store_);
  other.Add({{"model", "llama-10m"}});  // the same point: in both sweeps
  other.Add({{"model", "llama-25m"}});
  other.Put("it's; another");
  EXPECT_EQ(Render(ShippedReport(), store_, {"one", ReportFormat::kCsv}).runs, 1);
  EXPECT_EQ(Render(ShippedReport(), store_, {"it's; another", ReportFormat::kCsv}).runs, 2);
  EXPECT_EQ(Render(ShippedReport(), store_, {"", ReportFormat::kCsv}).runs, 2);
}

TEST_F(RenderTest, AnUnknownSweepIsAnError) {
  FillSample(store_);
  try {
    Render(ShippedReport(), store_, {"sampel", ReportFormat::kHtml});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kUsage);
    EXPECT_THAT(e.message(), HasSubstr("sampel"));
  }
}

TEST_F(RenderTest, AnEmptyStoreIsAPageThatSaysSo) {
  EXPECT_THAT(Rendered(ReportFormat::kHtml), HasSubstr("There are no runs to show yet."));
  EXPECT_THAT(Rendered(ReportFormat::kMarkdown), HasSubstr("There are no runs to show yet."));
  EXPECT_THAT(Rendered(ReportFormat::kCsv), HasSubstr("panel,model,precision"));
  EXPECT_EQ(ParseJson(Rendered(ReportFormat::kJson), "json")["rows"], Json::array());
}

TEST_F(RenderTest, FiguresOfFailedRunsAreNotDrawn) {
  Runs runs(store_);
  RunResult& diverged = runs.Add({{"model", "llama-10m"}});
  diverged.status = RunStatus::kDiverged;
  diverged.message = "the loss stopped being finite at step 3";
  runs.Put("s");
  const std::string html = Rendered(ReportFormat::kHtml);
  EXPECT_THAT(html, HasSubstr("diverged"));
  EXPECT_THAT(html, Not(HasSubstr("<rect x=")));
  EXPECT_THAT(html, HasSubstr("the loss stopped being finite at step 3"));
}

TEST_F(RenderTest, TrainersOwnMetricsHaveTheirOwnColumns) {
  Runs runs(store_);
  RunResult& few = runs.Add({{"model", "llama-10m"}, {"steps", 103}});
  few.measured_steps = 4;
  few.metrics = {{"data_time", {0.0125, "<s>"}}};
  few.printed.mfu = 0.41;
  few.memory.device_peak_bytes = 2'000'000;
  few.memory.device_peak_kind = "allocated";
  few.memory.device_reserved_bytes = 3'000'000;
  runs.Add({{"model", "llama-10m"}, {"batch_size", 2}});
  runs.Put("sample");
  const std::string csv = Rendered(ReportFormat::kCsv);
  for (const char* column :
       {"device_peak_kind", "device_reserved_bytes", "printed_mfu", "metric.data_time", "run_note"})
    EXPECT_THAT(csv.substr(0, csv.find('\n')), HasSubstr(column));
  EXPECT_THAT(csv, HasSubstr("steps 4 of 103"));
  const std::string html = Rendered(ReportFormat::kHtml);
  for (const char* shown : {"steps 4 of 103", "data_time, &lt;s&gt;", "41.0\u00a0%", "allocated", "3.00 MB"})
    EXPECT_THAT(html, HasSubstr(shown));
  EXPECT_THAT(Rendered(ReportFormat::kMarkdown), HasSubstr("steps 4 of 103"));
  for (const char* report : {"sweep", "memory"})
    EXPECT_THAT(Render(ShippedReport(report), store_, {"sample", ReportFormat::kMarkdown}).bytes,
                HasSubstr("steps 4 of 103"));
}

TEST_F(RenderTest, ACrowdIsCutAndThePageSaysSo) {
  Runs runs(store_);
  const int panels = static_cast<int>(kMaxPanels) + 3;
  for (int i = 0; i < panels; ++i) runs.Add({{"model", "llama-10m"}, {"seq_length", 64 + i}});
  const int rows = static_cast<int>(kMaxTableRows) + 20;
  for (int i = 0; i < rows; ++i) runs.Add({{"model", "gpt-10m"}, {"seq_length", 64}, {"batch_size", 1 + i}});
  runs.Put("crowd");
  const std::string html = Rendered(ReportFormat::kHtml);
  EXPECT_THAT(html, HasSubstr("This page shows the first 24 of 28 panels; 4 runs are left out. The CSV"));
  EXPECT_THAT(html, HasSubstr("The first 100 of 120 runs; the CSV"));
  EXPECT_THAT(html, HasSubstr("The first 40 of 120 runs are drawn."));
  const std::string markdown = Rendered(ReportFormat::kMarkdown);
  EXPECT_THAT(markdown, HasSubstr("The first 24 of 28 panels; the CSV"));
  EXPECT_THAT(markdown, HasSubstr("The first 100 of 120 runs; the CSV"));
  const std::string csv = Rendered(ReportFormat::kCsv);
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 1 + panels + rows);
  EXPECT_EQ(ParseJson(Rendered(ReportFormat::kJson), "json")["rows"].size(), static_cast<size_t>(panels + rows));
}

// Panels with this many cells are large. The page shows as many as a browser opens at once.
TEST_F(RenderTest, APageOfGreatMapsIsStillSmall) {
  Runs runs(store_);
  const std::vector<std::string> formats = {"fp32", "bf16", "fp16", "fp8", "mxfp8", "nvfp4"};
  for (const std::string& format : formats) {
    for (int run = 0; run < 1050; ++run) {
      runs.Add({{"model", "gpt-10m"},
                {"precision", format},
                {"batch_size", 1 + run % 42},
                {"seq_length", 32 * (1 + run / 42)}});
    }
  }
  runs.Put("maps");
  const std::string html = Render(ShippedReport("memory-map"), store_, {"maps", ReportFormat::kHtml}).bytes;
  EXPECT_THAT(html, HasSubstr("The first 1000 of 1050 runs are drawn."));
  EXPECT_THAT(html, ContainsRegex("This page shows the first [2-5] of 6 panels; [0-9]* runs are left out."));
  EXPECT_LE(html.size(), 5'000'000U);
}

TEST(FormatValue, HasAsManyDigitsAsSayAnything) {
  const auto percent = [](double value) { return FormatValue(ValueStyle::kSignedPercent, Cell(value)); };
  EXPECT_EQ(percent(7.44), "+7.4\xC2\xA0%");
  EXPECT_EQ(percent(-99.94),
            "\xE2\x88\x92"
            "99.9\xC2\xA0%");
  EXPECT_EQ(percent(99.96), "+100\xC2\xA0%");
  EXPECT_EQ(percent(52430.6), "+52431\xC2\xA0%");
  const auto number = [](double value) { return FormatValue(ValueStyle::kNumber, Cell(value)); };
  EXPECT_EQ(number(2.99), "2.990") << "as 3.001 beside it";
  EXPECT_EQ(number(3.0014), "3.001");
  EXPECT_EQ(number(-12.5),
            "\xE2\x88\x92"
            "12.50");
  EXPECT_EQ(number(0.012), "0.0120");
  EXPECT_EQ(number(12), "12");
}

TEST(ReportFormat, HasAName) {
  EXPECT_EQ(ReportFormatNamed("html"), ReportFormat::kHtml);
  EXPECT_EQ(ReportFormatNamed("csv"), ReportFormat::kCsv);
  EXPECT_EQ(ReportFormatNamed("md"), ReportFormat::kMarkdown);
  EXPECT_EQ(ReportFormatNamed("json"), ReportFormat::kJson);
  for (const char* name : {"pdf", "", "b.html"}) EXPECT_THROW(ReportFormatNamed(name), Error) << name;
}

}  // namespace
}  // namespace ridgeline::report
