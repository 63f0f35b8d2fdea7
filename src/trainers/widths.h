// Finds out from the widths of a log's lines whether a terminal has wrapped them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

namespace ridgeline::trainers {

// Counts lines by width. Wrapped lines are many, and all as wide as the terminal.
class Widths {
 public:
  void Line(std::string_view line) {
    ++lines_;
    if (std::ssize(line) < widest_) return;
    int64_t width = 0;
    for (const char c : line) width += (static_cast<unsigned char>(c) & 0xC0U) == 0x80 ? 0 : 1;
    if (width < widest_ || IsRule(line)) return;
    if (width > widest_) widest_lines_ = 0;
    widest_ = width;
    ++widest_lines_;
  }

  std::optional<int64_t> Wrapped() const {
    const bool wrapped = widest_ >= kLeastWidth && widest_ <= kMostWidth && widest_lines_ >= kLeastWrapped &&
                         widest_lines_ * kMostShareOfWrapped >= lines_;
    return wrapped ? std::optional(widest_) : std::nullopt;
  }

 private:
  static constexpr int64_t kLeastWidth = 40;
  static constexpr int64_t kMostWidth = 500;
  static constexpr int64_t kLeastWrapped = 3;
  static constexpr int64_t kMostShareOfWrapped = 20;  // at least one line in so many

  // "=====": its width says nothing.
  static bool IsRule(std::string_view line) {
    const char middle = line.empty() ? ' ' : line[line.size() / 2];
    return 2 * std::count(line.begin(), line.end(), middle) > std::ssize(line);
  }

  int64_t lines_ = 0;
  int64_t widest_ = 0;
  int64_t widest_lines_ = 0;
};

}  // namespace ridgeline::trainers
