#include "engine/device/cuda/fastest.h"

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "engine/device/cuda/runtime.h"

namespace ridgeline {
namespace {

constexpr size_t kRuns = 5;
constexpr float kNoise = 1.02F;
constexpr float kNever = std::numeric_limits<float>::infinity();

}  // namespace

std::optional<size_t> Fastest(size_t ways, const std::function<bool(size_t way)>& queue, cudaStream_t stream) {
  std::array<CudaEvent, kRuns + 1> between;
  for (CudaEvent& event : between) event = NewCudaEvent(true);
  std::vector<float> least_ms(ways, kNever);
  for (size_t way = 0; way < ways; ++way) {
    // The first run is not timed and may load kernels. While it keeps the device busy, the host queues the others, so
    // that they follow each other without gaps, unless they are shorter than the time to queue them.
    if (!queue(way)) continue;
    CheckCuda(cudaEventRecord(between[0].get(), stream), "cudaEventRecord");
    for (size_t run = 1; run <= kRuns; ++run) {
      queue(way);
      CheckCuda(cudaEventRecord(between[run].get(), stream), "cudaEventRecord");
    }
    CheckCuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    for (size_t run = 1; run <= kRuns; ++run) {
      float ms = 0;
      CheckCuda(cudaEventElapsedTime(&ms, between[run - 1].get(), between[run].get()), "cudaEventElapsedTime");
      least_ms[way] = std::min(least_ms[way], ms);  // disturbances make a run longer, never shorter
    }
  }
  const float least = ways == 0 ? kNever : *std::ranges::min_element(least_ms);
  if (least == kNever) return std::nullopt;
  const auto first = std::ranges::find_if(least_ms, [&](float ms) { return ms <= kNoise * least; });
  return static_cast<size_t>(first - least_ms.begin());
}

}  // namespace ridgeline
