// Renders reports on request.
#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "report/escape.h"
#include "report/report.h"
#include "serve/pages.h"

namespace ridgeline::serve {
namespace {
namespace fs = std::filesystem;

struct ReportForm {
  std::string_view extension;
  report::ReportFormat format;
  const char* type;
};
constexpr ReportForm kForms[] = {{".csv", report::ReportFormat::kCsv, "text/csv; charset=utf-8"},
                                 {".md", report::ReportFormat::kMarkdown, "text/markdown; charset=utf-8"},
                                 {".json", report::ReportFormat::kJson, "application/json"}};

}  // namespace

PageAnswer ReportsPage(store::Store& store, const Links& to, const std::vector<fs::path>& folders) {
  List list{"reports",
            {{"report"}, {"of one sweep"}, {"as a file", report::ValueStyle::kText, false}},
            {},
            {},
            /*sorts=*/false};
  std::vector<std::string> sweeps;
  constexpr size_t kMostLinks = 8;
  for (const auto& row : store.Query("SELECT name FROM sweeps ORDER BY created_unix_ns DESC, name").rows) {
    if (sweeps.size() < kMostLinks) sweeps.push_back(CellText(row[0]));
  }
  for (const fs::path& folder : report::FindReports(folders)) {
    const std::string name = folder.filename().string();
    ListRow row;
    try {
      row.cells.push_back({report::LoadReportFolder(folder).title, to({"reports", name})});
    } catch (const Error& e) {
      // The other reports can still be read.
      row.cells.push_back({fmt::format("{} cannot be read: {}", name, e.message())});
      row.failed = true;
    }
    std::string of_sweeps;
    for (const std::string& sweep : sweeps) {
      of_sweeps += (of_sweeps.empty() ? "" : ", ") + LinkHtml(to({"reports", name}, {{"sweep", sweep}}), sweep);
    }
    row.cells.push_back({"", "", of_sweeps.empty() ? "\xE2\x80\x93" : of_sweeps});
    std::string files;
    for (const ReportForm& form : kForms) {
      files += (files.empty() ? "" : ", ") +
               LinkHtml(to({"reports", name + std::string(form.extension)}), form.extension.substr(1));
    }
    row.cells.push_back({"", "", files});
    list.rows.push_back(std::move(row));
  }
  const std::string main = list.rows.empty() ? "<p class=\"empty\">No reports are installed.</p>\n" : ListHtml(list);
  return Framed(to, {"Reports", "Rendered from the newest measurements when they are asked for", main, "/reports", ""});
}

PageAnswer ReportPage(store::Store& store, const std::vector<fs::path>& folders, const std::string& file,
                      const PageRequest& request) {
  report::RenderOptions options;
  options.format = report::ReportFormat::kHtml;
  options.sweep = request.Value("sweep");
  options.campaign = request.Value("campaign");
  PageAnswer answer;
  answer.policy = ReportPolicy();
  answer.is_lasting = true;
  std::string name = file;
  for (const ReportForm& form : kForms) {
    if (!file.ends_with(form.extension)) continue;
    name = file.substr(0, file.size() - form.extension.size());
    options.format = form.format;
    answer.type = form.type;
    answer.file_name = file;
  }
  answer.body = report::Render(report::LoadReport(name, folders), store, options).bytes;
  return answer;
}

}  // namespace ridgeline::serve
