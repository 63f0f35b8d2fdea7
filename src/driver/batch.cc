#include "driver/batch.h"

#include "driver/patience.h"

namespace ridgeline::driver {

BatchSize::BatchSize(bool bulk) : bulk_(bulk), jobs_(bulk ? kMostAtOnce : 1) {}

void BatchSize::Took(size_t jobs, int64_t took_ns) {
  if (bulk_) return;
  if (took_ns > kSlowCallNs) {
    const double jobs_in_time = static_cast<double>(jobs) * kSlowCallNs / static_cast<double>(took_ns);
    jobs_ = std::max<size_t>(1, static_cast<size_t>(jobs_in_time));
  } else if (took_ns <= kQuickCallNs && jobs == jobs_) {
    jobs_ = std::min(kBatchGrowth * jobs_, kMostAtOnce);
  }
}

}  // namespace ridgeline::driver
