// The pages, each from a store that was opened for it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "serve/feed.h"
#include "serve/http.h"
#include "serve/markup.h"
#include "store/store.h"

namespace ridgeline {

// A page of ours with its policy.
PageAnswer Framed(const Links& to, const PageFrame& frame);

// What runs now, as HTML; of one sweep where `only` names it. The element of the page that it is in.
std::string LiveHtml(const LiveNow& live, const Links& to, const std::string& only);
std::string LiveElement(const LiveNow& live, const Links& to, const std::string& only);

PageAnswer FirstPage(const LiveNow& live, const Links& to, const std::string& db);
PageAnswer SweepPage(Store& store, const LiveNow& live, const Links& to, const std::string& name,
                     const std::vector<std::string>& reports);

// Runs that `filters` let through, the newest first: of an address, those that are known names. `before`: only those
// with a smaller number; 0: all.
struct RunsShown {
  std::string html;
  int64_t count = 0;
  int64_t older = 0;  // `before` for those that follow; 0: there are none
};
RunsShown RunsTable(Store& store, const Links& to, const QueryValues& filters, int64_t before, int64_t most);
PageAnswer RunsPage(Store& store, const Links& to, const PageRequest& request);

// A measurement by "POINT.ENDED", its point's id and when it ended (unix_ns), which stay as they are in a store that is
// merged or made again; or by its number, which leads there. One that a further repeat has replaced leads to that.
// Throws Error(kUsage) for one that is not there.
PageAnswer RunPage(Store& store, const Links& to, const std::string& name);

// The end of a point's log, from the folder of its job where that is on this machine: there while the point runs, and
// where it did not end well. Empty where there is none.
std::string LogHtml(const std::string& job_dir, const std::string& point_id);

PageAnswer HistoriesPage(Store& store, const Links& to);
PageAnswer HistoryPage(Store& store, const Links& to, const std::string& point_id);

// Of the nights whose records are in `folder`, as `ridgeline nightly` keeps them beside its database.
PageAnswer NightsPage(const Links& to, const std::filesystem::path& folder);

PageAnswer ComparePage(Store& store, const Links& to, const PageRequest& request);

// `file`: "NAME", "NAME.csv", "NAME.md", "NAME.json". Throws Error as LoadReport and Render do.
PageAnswer ReportsPage(Store& store, const Links& to, const std::vector<std::filesystem::path>& folders);
PageAnswer ReportPage(Store& store, const std::vector<std::filesystem::path>& folders, const std::string& file,
                      const PageRequest& request);

}  // namespace ridgeline
