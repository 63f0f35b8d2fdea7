// Files and names that were passed over in folders that others fill.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"

namespace ridgeline::collect {

// Names of what was not read, each counted once. Shows the count and the first few names.
class PassedOver {
 public:
  void Add(std::string name) {
    if (names_.size() < kMostNames) names_.insert(std::move(name));
  }
  bool empty() const { return names_.empty(); }
  // "3 points: a, b, c"; "10000 or more points: ..." at the limit of the count.
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

}  // namespace ridgeline::collect
