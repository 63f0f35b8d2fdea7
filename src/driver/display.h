// What a run prints: one line for each point that ends. On a terminal, also one live line that follows the current
// points.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <string_view>

#include "driver/driver.h"

namespace ridgeline::driver {

// Erases the line with the cursor.
inline constexpr std::string_view kEraseLine = "\r\x1b[K";

// Returns whether `out` is a terminal that can redraw a line, that is, TERM is not "dumb".
bool CanRedraw(std::FILE* out);

class RunDisplay final : public RunObserver {
 public:
  struct Options {
    std::string sweep;
    bool live = false;    // the output is a terminal: the last line is redrawn in place
    size_t columns = 80;  // the terminal's width, if it does not report one
    bool colour = false;  // colours how points end
  };

  // `out` must outlive it.
  RunDisplay(std::FILE* out, Options options) : out_(out), options_(std::move(options)) {}
  ~RunDisplay() override { Erase(); }
  RunDisplay(const RunDisplay&) = delete;
  RunDisplay& operator=(const RunDisplay&) = delete;

  void Started(const RunStart& start) override;
  void PointEnded(const std::string& label, const std::string& outcome, const RunProgress& progress) override;
  void Note(const std::string& text) override;
  bool WantsProgress(int64_t monotonic_ns) override;
  void Progress(const RunProgress& progress) override;
  void Working(const std::string& line) override;

  // Erases the live line, so that other output can follow.
  void Erase();

 private:
  void Line(const std::string& text);
  // Redraws the live line. `of_columns` returns it for a number of columns.
  void Redraw(const std::function<std::string(size_t columns)>& of_columns);
  std::string Coloured(const std::string& outcome) const;

  std::FILE* out_;
  Options options_;
  std::string shown_;  // the live line as shown now; empty: none
  int64_t next_ns_ = 0;
};

// Returns the options for a stream. The live line is on if the stream can redraw a line. Then there are also colours,
// unless NO_COLOR is set (no-color.org).
RunDisplay::Options DisplayOptions(std::FILE* out, const std::string& sweep);

}  // namespace ridgeline::driver
