// The project's own sources, as the tests of its order read them.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace ridgeline {

inline std::filesystem::path SourceDir() { return RIDGELINE_SOURCE_DIR; }

// Every file below `folder` whose name ends with one of `endings`, relative to the source folder, sorted.
inline std::vector<std::string> FilesBelow(const std::string& folder, const std::vector<std::string_view>& endings) {
  std::vector<std::string> files;
  if (!std::filesystem::is_directory(SourceDir() / folder)) return files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(SourceDir() / folder)) {
    const std::string name = entry.path().lexically_relative(SourceDir()).generic_string();
    const auto ends_so = [&](std::string_view ending) { return name.ends_with(ending); };
    if (entry.is_regular_file() && std::any_of(endings.begin(), endings.end(), ends_so)) files.push_back(name);
  }
  std::sort(files.begin(), files.end());
  return files;
}

inline std::vector<std::string> Lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

}  // namespace ridgeline
