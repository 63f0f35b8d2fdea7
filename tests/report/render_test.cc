// The report that ships over a store that never changes, in every format; and what a page does when there is too much.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "report/page.h"
#include "tests/base/temp_dir.h"
#include "tests/report/sample.h"

namespace ridgeline {
namespace {

using report_sample::ExpectGolden;
using report_sample::FillSample;
using report_sample::Runs;
using report_sample::ShippedReport;
using report_sample::WithoutIds;
using testing::HasSubstr;
using testing::Not;

class RenderTest : public testing::Test {
 protected:
  std::string Rendered(ReportFormat format, const std::string& sweep = "") {
    return Render(ShippedReport(), store_, {sweep, format}).bytes;
  }

  TempDir dir_;
  Store store_ = Store::Open(dir_ / "ridgeline.db", Store::Mode::kReadWrite);
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

TEST(ReportFormat, IsSaidByTheExtension) {
  EXPECT_EQ(ReportFormatOf("a/b.html"), ReportFormat::kHtml);
  EXPECT_EQ(ReportFormatOf("b.HTM"), ReportFormat::kHtml);
  EXPECT_EQ(ReportFormatOf("b.csv"), ReportFormat::kCsv);
  EXPECT_EQ(ReportFormatOf("b.md"), ReportFormat::kMarkdown);
  EXPECT_EQ(ReportFormatOf("b.json"), ReportFormat::kJson);
  for (const char* name : {"b.pdf", "b", "html"}) EXPECT_THROW(ReportFormatOf(name), Error) << name;
}

}  // namespace
}  // namespace ridgeline
