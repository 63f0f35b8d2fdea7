// Finds the folders of reports, and the report that a name means.
#include <algorithm>
#include <set>
#include <utility>

#include "base/folders.h"
#include "base/user_folders.h"
#include "report/report.h"

namespace ridgeline::report {
namespace fs = std::filesystem;

namespace {

bool IsReport(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_regular_file(folder / "report.yaml", ignored);
}

}  // namespace

std::vector<fs::path> ReportFolders(std::vector<fs::path> own) { return FoldersOf("reports", std::move(own)); }

std::vector<fs::path> FindReports(const std::vector<fs::path>& folders) {
  std::vector<fs::path> reports;
  std::set<std::string> names;
  for (const fs::path& folder : folders) {
    ForEachEntry(folder, [&](const fs::directory_entry& entry) {
      const std::string name = entry.path().filename().string();
      if (name.front() != '.' && IsReport(entry.path()) && names.insert(name).second) reports.push_back(entry.path());
    });
  }
  std::sort(reports.begin(), reports.end(),
            [](const fs::path& a, const fs::path& b) { return a.filename() < b.filename(); });
  return reports;
}

Report LoadReport(const std::string& name, const std::vector<fs::path>& folders) {
  // A name is a single folder's: a path would read files from elsewhere.
  if (!name.empty() && name.find('/') == std::string::npos && name.front() != '.') {
    for (const fs::path& folder : folders) {
      if (IsReport(folder / name)) return LoadReportFolder(folder / name);
    }
  }
  std::vector<std::string> names;
  for (const fs::path& report : FindReports(folders)) names.push_back(report.filename().string());
  throw NoneOfName("report", name, names, folders);
}

}  // namespace ridgeline::report
