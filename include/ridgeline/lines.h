// Splits a text into lines.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

namespace ridgeline {

// Returns the lines without their line ends. Text after the last line end is a line, too, unless it is empty. REQUIRES:
// `text` outlives the result.
inline std::vector<std::string_view> SplitLines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

}  // namespace ridgeline
