// Splits a log of any length into lines, as a terminal would show them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace ridgeline::trainers {

inline constexpr size_t kMaxLogLineBytes = size_t{64} << 10;  // the rest of a longer line is not read

// Takes bytes in parts of any size. A line ends with \n, \r\n, or a lone \r, with which progress bars start over.
// Removes ANSI escape sequences and control characters except the tab. Invalid UTF-8 becomes U+FFFD.
class LogLines {
 public:
  // `number` counts as editors and sed do: lines that end with a lone \r share the number of their \n.
  using Take = std::function<void(int64_t number, std::string_view line)>;
  explicit LogLines(Take take) : take_(std::move(take)) {}

  void Feed(std::string_view bytes);
  void End();  // text after the last line end is a line, too
  int64_t lines() const { return number_ - (open_ ? 0 : 1); }

  // During `take`. end: how many bytes came up to the line's last, without its line end. is_cut: the line may be
  // incomplete, because it has no line end or is too long.
  int64_t end() const { return line_end_; }
  bool is_cut() const { return cut_; }

 private:
  void EndLine();

  Take take_;
  std::string line_;
  int64_t number_ = 1;
  bool open_ = false;  // the current line has begun
  bool cut_ = false;
  int64_t bytes_ = 0;  // fed so far
  int64_t line_end_ = 0;
};

}  // namespace ridgeline::trainers
