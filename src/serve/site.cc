#include "serve/site.h"

#include <algorithm>
#include <exception>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "metrics/metrics.h"
#include "report/escape.h"
#include "report/report.h"
#include "serve/pages.h"
#include "store/store.h"

namespace ridgeline {
namespace {
namespace fs = std::filesystem;

class Turn {
 public:
  explicit Turn(auto& semaphore) : release_([&semaphore] { semaphore.release(); }) { semaphore.acquire(); }
  ~Turn() { release_(); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  std::function<void()> release_;
};

// "/runs/12" is {"runs", "12"}; a name behind the first part may have slashes of its own.
std::vector<std::string> PartsOf(const std::string& path) {
  const std::string rest = path.substr(std::min<size_t>(1, path.size()));
  const size_t slash = rest.find('/');
  std::vector<std::string> parts;
  if (!rest.empty()) parts.push_back(rest.substr(0, slash));
  if (slash != std::string::npos && slash + 1 < rest.size()) parts.push_back(rest.substr(slash + 1));
  return parts;
}

PageAnswer Trouble(int status, const std::string& what, const std::string& hint) {
  std::string main = "<p class=\"answer\">" + EscapeHtml(PrintableText(what)) + "</p>\n";
  if (!hint.empty()) main += "<p>" + EscapeHtml(PrintableText(hint)) + "</p>\n";
  PageAnswer answer = Framed({status == 404 ? "Not here" : "That did not work", "", main, "", ""});
  answer.status = status;
  return answer;
}

int StatusOf(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kUsage:
      return 404;
    case ErrorKind::kInfrastructure:
      return 503;
    default:
      return 500;
  }
}

}  // namespace

PageAnswer Framed(const PageFrame& frame) {
  PageAnswer answer;
  answer.body = PageHtml(frame);
  answer.policy = PagePolicy();
  return answer;
}

Site::Site(const fs::path& db, std::vector<fs::path> report_folders, const Clock& clock)
    : db_(fs::absolute(db)), report_folders_(std::move(report_folders)), feed_(db_, clock) {}

PageAnswer Site::Answer(const PageRequest& request) {
  try {
    return Route(request);
  } catch (const Error& e) {
    return Trouble(StatusOf(e.kind()), e.message(), e.hint());
  } catch (const std::exception& e) {
    return Trouble(500, e.what(), "");
  }
}

PageAnswer Site::Route(const PageRequest& request) {
  const std::vector<std::string> parts = PartsOf(request.path);
  if (parts.empty()) return FirstPage(*feed_.Latest(), db_.string());
  const std::string& first = parts.front();
  if (parts.size() == 1 && first == "metrics") return Metrics(request);
  const Turn turn(readers_);
  Store store = Store::Open(db_, Store::Mode::kReadOnly);
  if (parts.size() == 1) {
    if (first == "runs") return RunsPage(store, request);
    if (first == "history") return HistoriesPage(store);
    if (first == "compare") return ComparePage(store, request);
    if (first == "reports") return ReportsPage(store, report_folders_);
  } else {
    if (first == "sweeps") return SweepPage(store, *feed_.Latest(), parts[1], ReportNames());
    if (first == "runs") return RunPage(store, parts[1]);
    if (first == "history") return HistoryPage(store, parts[1]);
    if (first == "reports") return ReportPage(store, report_folders_, parts[1], request);
  }
  throw Error(ErrorKind::kUsage, fmt::format("there is no page {}", PrintableLine(request.path)),
              "the links above lead to what there is");
}

PageAnswer Site::Metrics(const PageRequest& request) {
  const MetricsFormat format = request.accept.find("application/openmetrics-text") == std::string::npos
                                   ? MetricsFormat::kPrometheus
                                   : MetricsFormat::kOpenMetrics;
  PageAnswer answer;
  answer.type = ContentTypeOf(format);
  if (!fs::exists(db_)) {
    answer.body = MetricsOfNothing(format);
    return answer;
  }
  const auto live = feed_.Latest();
  const Turn turn(readers_);
  Store store = Store::Open(db_, Store::Mode::kReadOnly);
  answer.body = MetricsOf(store, live->now, format);
  return answer;
}

std::string Site::Live(const std::string& sweep) { return LiveHtml(*feed_.Latest(), sweep); }

std::vector<std::string> Site::ReportNames() const {
  std::vector<std::string> names;
  for (const fs::path& report : FindReports(report_folders_)) names.push_back(report.filename().string());
  return names;
}

}  // namespace ridgeline
