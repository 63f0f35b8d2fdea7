#include "run/repeats.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "run/step_figures.h"

namespace ridgeline {
namespace {

// Combines the values of both with `together`, or takes the only one.
template <typename T, typename Together>
void Merge(const std::optional<T>& earlier, std::optional<T>& own, Together together) {
  if (own && earlier) {
    own = together(*own, *earlier);
  } else if (earlier) {
    own = earlier;
  }
}

// `earlier` covers `runs` runs of equal steps.
void MergeGpu(const GpuFigures& earlier, double runs, GpuFigures& own) {
  const auto mean = [&](double a, double b) { return (a + runs * b) / (runs + 1); };
  const auto sum = [](auto a, auto b) { return a + b; };
  const auto most = [](auto a, auto b) { return std::max(a, b); };
  Merge(earlier.power_w, own.power_w, mean);
  Merge(earlier.power_max_w, own.power_max_w, most);
  Merge(earlier.power_limit_w, own.power_limit_w, most);
  own.energy_j = own.energy_j && earlier.energy_j ? std::optional(*own.energy_j + *earlier.energy_j) : std::nullopt;
  Merge(earlier.sm_clock_mhz, own.sm_clock_mhz, mean);
  Merge(earlier.sm_clock_min_mhz, own.sm_clock_min_mhz, [](double a, double b) { return std::min(a, b); });
  Merge(earlier.memory_clock_mhz, own.memory_clock_mhz, mean);
  Merge(earlier.temperature_c, own.temperature_c, most);
  Merge(earlier.throttled_share, own.throttled_share, most);
  for (const auto& [limit, samples] : earlier.clock_limits) own.clock_limits[limit] += samples;
  Merge(earlier.ecc_corrected, own.ecc_corrected, sum);
  Merge(earlier.ecc_uncorrected, own.ecc_uncorrected, sum);
  Merge(earlier.others, own.others, most);
  Merge(earlier.others_bytes, own.others_bytes, most);
}

}  // namespace

void AddEarlierRepeats(const RunResult& earlier, int64_t warmup_steps, RunResult& result) {
  result.repeat = earlier.repeat + 1;
  std::vector<int64_t>& own = result.step_ns.all_ns;
  const std::vector<int64_t>& before = earlier.step_ns.all_ns;
  result.memory.rss_peak_bytes = std::max(result.memory.rss_peak_bytes, earlier.memory.rss_peak_bytes);
  MemoryFigures& memory = result.memory;
  if (earlier.memory.device_peak_kind == memory.device_peak_kind) {
    memory.device_peak_bytes = std::max(memory.device_peak_bytes, earlier.memory.device_peak_bytes);
  }
  memory.device_reserved_bytes = std::max(memory.device_reserved_bytes, earlier.memory.device_reserved_bytes);
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
  const auto runs = static_cast<double>(earlier.repeat);
  MergeGpu(earlier.gpu, runs, result.gpu);
  const auto mean = [&](double a, double b) { return (a + runs * b) / (runs + 1); };
  Merge(earlier.printed.mfu, result.printed.mfu, mean);
  Merge(earlier.printed.tflops_per_gpu, result.printed.tflops_per_gpu, mean);
  for (auto& [name, own] : result.metrics) {
    const auto before = earlier.metrics.find(name);
    if (before == earlier.metrics.end() || before->second.unit != own.unit) continue;
    own.value = mean(own.value, before->second.value);
  }
  // The runs have equal tokens, so their times add up.
  const double before_cold = earlier.throughput.cold_tokens_per_s;
  if (own_cold > 0 && before_cold > 0) {
    result.throughput.cold_tokens_per_s = (runs + 1) / (runs / before_cold + 1 / own_cold);
  }
}

}  // namespace ridgeline
