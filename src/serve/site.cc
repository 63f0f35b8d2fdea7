#include "serve/site.h"

#include <malloc.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/folders.h"
#include "base/hash.h"
#include "base/text.h"
#include "metrics/metrics.h"
#include "report/escape.h"
#include "report/report.h"
#include "serve/gzip.h"
#include "serve/pages.h"
#include "store/store.h"

namespace ridgeline::serve {
namespace {
namespace fs = std::filesystem;

constexpr size_t kLeastCompressed = 1000;

// Splits "/runs/12" into {"runs", "12"}. The part after the first may contain slashes.
std::vector<std::string> PartsOf(const std::string& path) {
  const std::string rest = path.substr(std::min<size_t>(1, path.size()));
  const size_t slash = rest.find('/');
  std::vector<std::string> parts;
  if (!rest.empty()) parts.push_back(rest.substr(0, slash));
  if (slash != std::string::npos && slash + 1 < rest.size()) parts.push_back(rest.substr(slash + 1));
  return parts;
}

PageAnswer Trouble(const Links& to, int status, const std::string& what, const std::string& hint) {
  std::string main = "<p class=\"answer\">" + report::EscapeHtml(PrintableText(what)) + "</p>\n";
  if (!hint.empty()) main += "<p>" + report::EscapeHtml(PrintableText(hint)) + "</p>\n";
  PageAnswer answer = Framed(to, {status == 404 ? "Not here" : "That did not work", "", main, "", ""});
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

// Returns freed memory to the system at its end: a page of a large store uses hundreds of megabytes.
struct TrimmedMemory {
  TrimmedMemory() = default;
  TrimmedMemory(const TrimmedMemory&) = delete;
  TrimmedMemory& operator=(const TrimmedMemory&) = delete;
  ~TrimmedMemory() { ::malloc_trim(0); }
};

// Whether an If-None-Match header names it, in any encoding.
bool IsNamed(std::string_view if_none_match, std::string_view hash) {
  return Trim(if_none_match) == "*" || (!hash.empty() && if_none_match.find(hash) != std::string_view::npos);
}

}  // namespace

PageAnswer Framed(const Links& to, const PageFrame& frame) {
  PageAnswer answer;
  answer.body = PageHtml(to, frame);
  answer.policy = PagePolicy();
  return answer;
}

Site::Site(const fs::path& db, std::vector<fs::path> report_folders, const Clock& clock, std::string base_path)
    : db_(fs::absolute(db)),
      report_folders_(std::move(report_folders)),
      links_(std::move(base_path)),
      feed_(db_, clock),
      health_(db_) {}

PageAnswer Site::Answer(const PageRequest& request) {
  const std::string key = Links()({request.path}, request.query);
  std::vector<fs::path> files;
  std::string stamp;
  try {
    files = FilesOf(request);
    stamp = StampOf(files);
  } catch (const Error&) {
    // The page is not kept. If the same keeps it from being made, it says so.
  }
  std::optional<PageAnswer> kept = stamp.empty() ? std::nullopt : cache_.Find(key, stamp);
  PageAnswer answer = kept ? std::move(*kept) : Made(request);
  if (!kept && answer.is_lasting && answer.status == 200) answer.etag = Hex(Hash(answer.body));
  const bool is_compressed = answer.encoding == "gzip";
  const bool accepts = AcceptsGzip(request.accept_encoding);
  const bool keeps = !kept && !answer.etag.empty() && !stamp.empty() && StampOf(files) == stamp;
  answer.varies = true;
  if (!is_compressed && (keeps || (accepts && answer.body.size() >= kLeastCompressed))) {
    std::string compressed = Gzip(answer.body);
    if (keeps) {
      PageAnswer put = answer;
      put.body = compressed;
      put.encoding = "gzip";
      cache_.Put(key, stamp, put);
    }
    if (accepts) {
      answer.body = std::move(compressed);
      answer.encoding = "gzip";
    }
  } else if (is_compressed && !accepts) {
    answer.body = Gunzip(answer.body);
    answer.encoding.clear();
  }
  if (!answer.etag.empty()) {
    const bool known = IsNamed(request.if_none_match, answer.etag);
    answer.etag = "\"" + answer.etag + (answer.encoding.empty() ? "\"" : "-" + answer.encoding + "\"");
    if (known) {
      answer.status = 304;
      answer.body.clear();
      answer.encoding.clear();
    }
  }
  return answer;
}

PageAnswer Site::Made(const PageRequest& request) {
  try {
    return Route(request);
  } catch (const Error& e) {
    return Trouble(links_, StatusOf(e.kind()), e.message(), e.hint());
  } catch (const std::exception& e) {
    return Trouble(links_, 500, e.what(), "");
  }
}

std::vector<fs::path> Site::FilesOf(const PageRequest& request) const {
  std::vector<fs::path> files = {db_, db_.string() + "-wal", db_.string() + "-journal"};
  const std::vector<std::string> parts = PartsOf(request.path);
  if (parts.size() != 2 || parts.front() != "reports") return files;
  for (const fs::path& folder : report::FindReports(report_folders_)) {
    const std::string name = folder.filename().string();
    if (parts[1] != name && !parts[1].starts_with(name + ".")) continue;
    std::vector<fs::path> of_report = {folder};
    ForEachEntry(folder, [&](const fs::directory_entry& entry) { of_report.push_back(entry.path()); });
    std::sort(of_report.begin(), of_report.end());
    files.insert(files.end(), of_report.begin(), of_report.end());
  }
  return files;
}

PageAnswer Site::Route(const PageRequest& request) {
  const std::vector<std::string> parts = PartsOf(request.path);
  if (parts.empty()) return FirstPage(*feed_.Latest(), links_, db_.string());
  const std::string& first = parts.front();
  if (parts.size() == 1 && first == "metrics") return Metrics(request);
  if (parts.size() == 1 && first == "healthz") return HealthAnswer();
  const auto entered = [&](FairSemaphore& semaphore) {
    FairSemaphore::Place place = semaphore.Enter(kReaderPatience);
    if (place != nullptr) return place;
    throw Error(ErrorKind::kInfrastructure, "other pages take all there is to make pages with",
                "ask again in a moment");
  };
  const bool is_report = parts.size() == 2 && first == "reports";
  const FairSemaphore::Place report = is_report ? entered(reports_) : nullptr;
  const FairSemaphore::Place place = entered(readers_);
  const TrimmedMemory trimmed;  // before the next page is made
  store::Store store = store::Store::Open(db_, store::Store::Mode::kReadOnly, {}, kLimits);
  if (parts.size() == 1) {
    if (first == "runs") return RunsPage(store, links_, request);
    if (first == "history") return HistoriesPage(store, links_);
    if (first == "nights") return NightsPage(links_, db_.parent_path() / "nights");
    if (first == "compare") return ComparePage(store, links_, request);
    if (first == "reports") return ReportsPage(store, links_, report_folders_);
  } else {
    if (first == "sweeps") return SweepPage(store, *feed_.Latest(), links_, parts[1], ReportNames());
    if (first == "runs") return RunPage(store, links_, parts[1]);
    if (first == "history") return HistoryPage(store, links_, parts[1]);
    if (first == "reports") return ReportPage(store, report_folders_, parts[1], request);
  }
  throw Error(ErrorKind::kUsage, fmt::format("there is no page {}", PrintableLine(request.path)),
              "the links above lead to what there is");
}

PageAnswer Site::Metrics(const PageRequest& request) {
  const metrics::MetricsFormat format = request.accept.find("application/openmetrics-text") == std::string::npos
                                            ? metrics::MetricsFormat::kPrometheus
                                            : metrics::MetricsFormat::kOpenMetrics;
  PageAnswer answer;
  answer.type = metrics::ContentTypeOf(format);
  if (!fs::exists(db_)) {
    answer.body = metrics::MetricsOfNothing(format);
    return answer;
  }
  const auto live = feed_.Latest();
  // If the state could not be read, figures that show nothing running would be wrong.
  if (!live->trouble.empty()) throw Error(ErrorKind::kInfrastructure, live->trouble);
  const TrimmedMemory trimmed;
  store::Store store = store::Store::Open(db_, store::Store::Mode::kReadOnly, {}, kLimits);
  answer.body = metrics::MetricsOf(store, live->now, format);
  return answer;
}

PageAnswer Site::HealthAnswer() {
  const std::string trouble = health_.Trouble();
  PageAnswer answer;
  answer.status = trouble.empty() ? 200 : 503;
  answer.type = "text/plain; charset=utf-8";
  answer.body = (trouble.empty() ? "ok" : PrintableLine(trouble)) + "\n";
  return answer;
}

std::string Site::Live(const std::string& sweep) { return LiveHtml(*feed_.Latest(), links_, sweep); }

std::vector<std::string> Site::ReportNames() const {
  std::vector<std::string> names;
  for (const fs::path& report : report::FindReports(report_folders_)) names.push_back(report.filename().string());
  return names;
}

}  // namespace ridgeline::serve
