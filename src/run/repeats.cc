#include "run/repeats.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "run/step_figures.h"

namespace ridgeline {

void AddEarlierRepeats(const RunResult& earlier, int64_t warmup_steps, RunResult& result) {
  result.repeat = earlier.repeat + 1;
  std::vector<int64_t>& own = result.step_ns.all_ns;
  const std::vector<int64_t>& before = earlier.step_ns.all_ns;
  result.memory.rss_peak_bytes = std::max(result.memory.rss_peak_bytes, earlier.memory.rss_peak_bytes);
  result.memory.device_peak_bytes = std::max(result.memory.device_peak_bytes, earlier.memory.device_peak_bytes);
  result.cores.busy_share = std::max(result.cores.busy_share, earlier.cores.busy_share);
  result.cores.others_share = std::max(result.cores.others_share, earlier.cores.others_share);
  result.cores.throttles += earlier.cores.throttles;
  const auto warmup = [&](const std::vector<int64_t>& steps) {
    return static_cast<std::ptrdiff_t>(std::min<int64_t>(warmup_steps, std::ssize(steps)));
  };
  if (own.empty() || before.empty() || std::ssize(before) <= warmup(before)) return;
  std::vector<int64_t> all = before;
  all.insert(all.end(), own.begin() + warmup(own), own.end());
  own = std::move(all);
  const double own_cold = result.throughput.cold_tokens_per_s;
  FillStepFigures({own.begin() + warmup(own), own.end()}, result);
  // Runs of equal tokens: their times add up.
  const auto runs = static_cast<double>(earlier.repeat);
  const double before_cold = earlier.throughput.cold_tokens_per_s;
  if (own_cold > 0 && before_cold > 0) {
    result.throughput.cold_tokens_per_s = (runs + 1) / (runs / before_cold + 1 / own_cold);
  }
}

}  // namespace ridgeline
