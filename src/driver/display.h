// What a run prints: a line for every point that ends, and on a terminal one more that follows the current ones.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "driver/driver.h"

namespace ridgeline {

// Takes away the line that the cursor is in.
inline constexpr std::string_view kEraseLine = "\r\x1b[K";

// Whether it is a terminal that can redraw a line: TERM is not "dumb".
bool CanRedraw(std::FILE* out);

class RunDisplay final : public RunObserver {
 public:
  struct Options {
    std::string sweep;
    bool live = false;    // a terminal: the last line is redrawn in place
    size_t columns = 80;  // of the terminal, where it does not say itself
    bool colour = false;  // of how points end
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

  // Takes the live line away, so that other output can follow.
  void Erase();

 private:
  void Line(const std::string& text);
  std::string Coloured(const std::string& outcome) const;

  std::FILE* out_;
  Options options_;
  std::string shown_;  // the live line as it stands; empty: none
  int64_t next_ns_ = 0;
};

// Options for a stream: live where it can redraw a line, and then in colour unless NO_COLOR is set (no-color.org).
RunDisplay::Options DisplayOptions(std::FILE* out, const std::string& sweep);

}  // namespace ridgeline
