// What lies in folders that others fill: each entry of one, and the count of what was passed over.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace ridgeline {

// Each entry of a folder; none where there is no such folder. Throws Error(kInfrastructure) where it cannot be read.
template <typename Take>
void ForEachEntry(const std::filesystem::path& folder, Take take) {
  std::error_code ec;
  std::filesystem::directory_iterator at(folder, ec);
  for (; !ec && at != std::filesystem::directory_iterator(); at.increment(ec)) take(*at);
  if (!ec || ec == std::errc::no_such_file_or_directory || ec == std::errc::not_a_directory) return;
  throw Error(ErrorKind::kInfrastructure, fmt::format("cannot read the folder {}: {}", folder.string(), ec.message()));
}

// What was not read, each once, as a count and the first few names.
class PassedOver {
 public:
  void Add(std::string name) {
    if (names_.size() < kMostNames) names_.insert(std::move(name));
  }
  bool empty() const { return names_.empty(); }
  // "3 points: a, b, c"; "10000 or more points: ..." where these are the most that are counted.
  std::string Words(const std::string& one, const std::string& many) const {
    std::string words = fmt::format("{}{} {}: ", names_.size(), names_.size() == kMostNames ? " or more" : "",
                                    names_.size() == 1 ? one : many);
    size_t shown = 0;
    for (const std::string& name : names_) {
      if (shown == kShownNames) return words + ", ...";
      words += (shown++ == 0 ? "" : ", ") + ShortenToBytes(name, kMostNameBytes);
    }
    return words;
  }

 private:
  static constexpr size_t kMostNames = 10'000;
  static constexpr size_t kShownNames = 5;
  static constexpr size_t kMostNameBytes = 100;
  std::set<std::string> names_;
};

}  // namespace ridgeline
