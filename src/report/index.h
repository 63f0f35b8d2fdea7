// A page that lists pages: what a folder of reports is browsed from.
#pragma once

#include <string>
#include <vector>

namespace ridgeline {

struct IndexEntry {
  std::string file;  // beside the index; empty: there is none
  std::string title;
  std::string description;
  std::string counts;                // "6 runs in 2 panels: 5 ok, 1 failed.", or why there is no page
  std::vector<std::string> answers;  // one a panel, the first of them
};

// Looks, and what it may load, are as those of a report's page.
std::string RenderIndex(const std::string& title, const std::vector<IndexEntry>& entries);

}  // namespace ridgeline
