// A page that lists pages: the entry to a folder of reports.
#pragma once

#include <string>
#include <vector>

namespace ridgeline::report {

struct IndexEntry {
  std::string file;  // beside the index; empty: no page
  std::string title;
  std::string description;
  std::string counts;                // "6 runs in 2 panels: 5 ok, 1 failed.", or why there is no page
  std::vector<std::string> answers;  // one per panel: its first answer
};

// Its style, and what it may load, are those of a report's page.
std::string RenderIndex(const std::string& title, const std::vector<IndexEntry>& entries);

}  // namespace ridgeline::report
