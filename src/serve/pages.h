// The pages, each made from a store that was opened for it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "serve/feed.h"
#include "serve/http.h"
#include "serve/markup.h"
#include "store/store.h"

namespace ridgeline::serve {

// One of our pages, with its policy.
PageAnswer Framed(const Links& to, const PageFrame& frame);

// The HTML of what runs now, the content of the page's element `live`. If `only` names a sweep, only that sweep's.
std::string LiveHtml(const LiveNow& live, const Links& to, const std::string& only);
std::string LiveElement(const LiveNow& live, const Links& to, const std::string& only);

PageAnswer FirstPage(const LiveNow& live, const Links& to, const std::string& db);
PageAnswer SweepPage(store::Store& store, const LiveNow& live, const Links& to, const std::string& name,
                     const std::vector<std::string>& reports);

// Runs that match `filters`, newest first. Only those of the address's names that are known count as filters. `before`:
// only runs with a smaller number; 0: all.
struct RunsShown {
  std::string html;
  int64_t count = 0;
  int64_t older = 0;  // `before` for the following page; 0: there is none
};
RunsShown RunsTable(store::Store& store, const Links& to, const QueryValues& filters, int64_t before, int64_t most);
PageAnswer RunsPage(store::Store& store, const Links& to, const PageRequest& request);

// A measurement by "POINT.ENDED", its point's id and its end (unix_ns). These stay the same in a store that is merged
// or rebuilt. Its number redirects there. A measurement that a further repeat has replaced redirects to that. Throws
// Error(kUsage) if it does not exist.
PageAnswer RunPage(store::Store& store, const Links& to, const std::string& name);

// The end of a point's log, from the folder of its job if that is on this machine. The log exists while the point runs,
// and afterwards if it did not end well. Empty if there is none.
std::string LogHtml(const std::string& job_dir, const std::string& point_id);

PageAnswer HistoriesPage(store::Store& store, const Links& to);
PageAnswer HistoryPage(store::Store& store, const Links& to, const std::string& point_id);

// The page of nights. `folder` has their records, as `ridgeline nightly` keeps them beside its database.
PageAnswer NightsPage(const Links& to, const std::filesystem::path& folder);

PageAnswer ComparePage(store::Store& store, const Links& to, const PageRequest& request);

// `file`: "NAME", "NAME.csv", "NAME.md", "NAME.json". Throws Error as LoadReport and Render do.
PageAnswer ReportsPage(store::Store& store, const Links& to, const std::vector<std::filesystem::path>& folders);
PageAnswer ReportPage(store::Store& store, const std::vector<std::filesystem::path>& folders, const std::string& file,
                      const PageRequest& request);

}  // namespace ridgeline::serve
