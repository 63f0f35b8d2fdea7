#include "driver/counting_line.h"

#include <cmath>
#include <cstdio>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "driver/display.h"

namespace ridgeline::driver {
namespace {

constexpr int64_t kQuietNs = 1'000'000'000;
constexpr int64_t kEveryNs = 250'000'000;

void ShowOnStandardError(const std::string& line) {
  const std::string bytes = std::string(kEraseLine) + line;
  std::fwrite(bytes.data(), 1, bytes.size(), stderr);
}

}  // namespace

const Clock& CountingLine::TheClock() {
  static const SystemClock clock;
  return clock;
}

CountingLine::CountingLine(std::string doing)
    : CountingLine(std::move(doing), TheClock(), CanRedraw(stderr) ? ShowOnStandardError : Show()) {}

CountingLine::CountingLine(std::string doing, const Clock& clock, Show show)
    : doing_(std::move(doing)), clock_(clock), show_(std::move(show)), begin_ns_(clock.MonotonicNs()) {}

CountingLine::~CountingLine() {
  if (written_ns_ != 0) show_("");
}

bool CountingLine::IsTime() {
  if (!show_) return false;
  const int64_t now_ns = clock_.MonotonicNs();
  if (now_ns - begin_ns_ < kQuietNs || now_ns - written_ns_ < kEveryNs) return false;
  written_ns_ = now_ns;
  return true;
}

void CountingLine::At(size_t done, size_t points) {
  if (done == 0 || !IsTime()) return;
  const double share = static_cast<double>(done) / static_cast<double>(points);
  const int64_t left_ns = std::llround(static_cast<double>(written_ns_ - begin_ns_) * (1 - share) / share);
  show_(fmt::format("{} {} of {} points, about {} left", doing_, done, points, FormatDuration(left_ns)));
}

void CountingLine::At(size_t done) {
  if (!IsTime()) return;
  show_(fmt::format("{}: {} tried in {}", doing_, done, FormatDuration(written_ns_ - begin_ns_)));
}

}  // namespace ridgeline::driver
