// A report.yaml is read whole or refused. A report that was read is drawn from an answer that has the columns it names,
// or refused because a column is missing.
#include "report/report.h"

#include "tests/fuzz/fuzz.h"

namespace ridgeline::fuzz {
namespace {

// An answer with two runs and one that failed.
Table AnswerFor(const report::Report& report) {
  Table answer;
  answer.columns = {"panel", "failure", "provenance", "emulated", "environment", "command"};
  for (const report::ReportColumn& column : report.columns) answer.columns.push_back(column.name);
  for (int64_t run = 1; run <= 3; ++run) {
    const Cell failure = run == 3 ? Cell("out of memory") : Cell();
    std::vector<Cell>& row =
        answer.rows.emplace_back(std::vector<Cell>{"one <panel>", failure, "measured", run % 2, "{}", "a | b"});
    for (const report::ReportColumn& column : report.columns) {
      if (column.style == report::ValueStyle::kText) {
        row.emplace_back("text " + std::to_string(run));
      } else if (column.style == report::ValueStyle::kSeries) {
        row.emplace_back("[2.5, null, 1e300]");
      } else {
        row.emplace_back(static_cast<double>(run) * 1e9);
      }
    }
  }
  return answer;
}

}  // namespace
}  // namespace ridgeline::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ridgeline;  // NOLINT(google-build-using-namespace): a program of one function
  static const fuzz::Folder folder;
  folder.Write("query.sql", "SELECT 1");
  folder.Write("report.yaml", fuzz::TextOf(data, size));
  fuzz::Takes([&] {
    const report::Report report = report::LoadReportFolder(folder.path());
    for (const report::ReportFormat format : {report::ReportFormat::kHtml, report::ReportFormat::kMarkdown}) {
      report::RenderOptions options;
      options.format = format;
      fuzz::Require(report::RenderRows(report, fuzz::AnswerFor(report), options).runs > 0, "runs are shown");
    }
  });
  return 0;
}
