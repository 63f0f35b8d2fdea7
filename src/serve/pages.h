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
PageAnswer Framed(const PageFrame& frame);

// What runs now, as HTML; of one sweep where `only` names it. The element of the page that it is in.
std::string LiveHtml(const LiveNow& live, const std::string& only);
std::string LiveElement(const LiveNow& live, const std::string& only);

PageAnswer FirstPage(const LiveNow& live, const std::string& db);
PageAnswer SweepPage(Store& store, const LiveNow& live, const std::string& name,
                     const std::vector<std::string>& reports);

// Runs that `filters` let through, the newest first: of an address, those that are known names.
struct RunsShown {
  std::string html;
  int64_t count = 0;
  bool more = false;
};
RunsShown RunsTable(Store& store, const QueryValues& filters, int64_t offset, int64_t most);
PageAnswer RunsPage(Store& store, const PageRequest& request);

// A measurement by its number in the store. Throws Error(kUsage) for one that is not there.
PageAnswer RunPage(Store& store, const std::string& number);

PageAnswer HistoriesPage(Store& store);
PageAnswer HistoryPage(Store& store, const std::string& point_id);

PageAnswer ComparePage(Store& store, const PageRequest& request);

// `file`: "NAME", "NAME.csv", "NAME.md", "NAME.json". Throws Error as LoadReport and Render do.
PageAnswer ReportsPage(Store& store, const std::vector<std::filesystem::path>& folders);
PageAnswer ReportPage(Store& store, const std::vector<std::filesystem::path>& folders, const std::string& file,
                      const PageRequest& request);

}  // namespace ridgeline
