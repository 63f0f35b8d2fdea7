#include "metrics/metrics_file.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "metrics/live.h"
#include "metrics/metrics.h"

namespace ridgeline::metrics {
namespace {

// Collectors read every 15 s or more. For a large store, the metrics take at most a tenth of the driver's time.
constexpr int64_t kWriteEveryNs = 5'000'000'000;
constexpr int64_t kRestForEachNs = 9;

}  // namespace

MetricsFile::MetricsFile(std::filesystem::path file, std::filesystem::path db, store::Store& store, const Clock& clock,
                         driver::RunObserver& shown)
    : file_(std::move(file)), db_(std::move(db)), store_(store), clock_(clock), shown_(shown) {
  Write(/*at_work=*/true);
}

MetricsFile::~MetricsFile() {
  try {
    Write(/*at_work=*/false);
  } catch (const std::exception&) {
    // The file stays as it was, and its age shows that.
  }
}

bool MetricsFile::WantsProgress(int64_t monotonic_ns) {
  is_shown_ = shown_.WantsProgress(monotonic_ns);
  return is_shown_ || monotonic_ns >= next_ns_;
}

void MetricsFile::Progress(const driver::RunProgress& progress) {
  if (is_shown_) shown_.Progress(progress);
  if (clock_.MonotonicNs() < next_ns_) return;
  try {
    Write(/*at_work=*/true);
    last_trouble_.clear();
  } catch (const Error& e) {
    // Measuring is worth more than reporting.
    if (e.message() != last_trouble_) {
      shown_.Note(fmt::format("the metrics could not be written: {}; the run goes on", e.message()));
    }
    last_trouble_ = e.message();
  }
}

void MetricsFile::Write(bool at_work) {
  const int64_t begin_ns = clock_.MonotonicNs();
  // Set before writing may fail, so that a full disk is not tried all the time.
  next_ns_ = begin_ns + kWriteEveryNs;
  StoreNow now = LookNow(store_, db_, clock_);
  if (!at_work) now.driver.reset();
  WriteFileAtomic(file_, MetricsOf(store_, now, MetricsFormat::kPrometheus));
  const int64_t end_ns = clock_.MonotonicNs();
  next_ns_ = end_ns + std::max(kWriteEveryNs, kRestForEachNs * (end_ns - begin_ns));
}

}  // namespace ridgeline::metrics
