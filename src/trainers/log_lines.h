// A log of any length, a line at a time, as a person would read it on a terminal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace ridgeline {

inline constexpr size_t kMaxLogLineBytes = size_t{64} << 10;  // what is behind is not read

// Takes bytes as they come. A line ends with \n, \r\n, or \r alone, with which progress bars begin anew. What commands
// a terminal (ANSI's escape sequences, other controls but the tab) is taken out, and what is no UTF-8 becomes U+FFFD.
class LogLines {
 public:
  // A line's number is that of editors and sed: lines that end with \r alone share the one of their \n.
  using Take = std::function<void(int64_t number, std::string_view line)>;
  explicit LogLines(Take take) : take_(std::move(take)) {}

  void Feed(std::string_view bytes);
  void End();  // what came behind the last line end is a line, too
  int64_t lines() const { return number_ - (open_ ? 0 : 1); }

  // Of the line that is taken: how many bytes there were up to its last, its end not counted; and whether more may
  // have been meant to come, as no line end did, or it is longer than is read.
  int64_t end() const { return line_end_; }
  bool is_cut() const { return cut_; }

 private:
  void EndLine();

  Take take_;
  std::string line_;
  int64_t number_ = 1;
  bool open_ = false;  // something of this number's line has come
  bool cut_ = false;
  int64_t bytes_ = 0;  // that came
  int64_t line_end_ = 0;
};

}  // namespace ridgeline
