#include "engine/device/cuda/fastest.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <vector>

#include "engine/device/cuda/runtime.h"

namespace ridgeline::engine {
namespace {

constexpr size_t kRuns = 5;
constexpr float kNoise = 1.02F;
constexpr float kNever = std::numeric_limits<float>::infinity();

using Queue = std::function<bool(size_t way)>;

void Record(const CudaEvent& event, cudaStream_t stream) {
  CheckCuda(cudaEventRecord(event.get(), stream), "cudaEventRecord");
}
void WaitFor(cudaStream_t stream) { CheckCuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize"); }
float MillisecondsBetween(const CudaEvent& first, const CudaEvent& second) {
  float ms = 0;
  CheckCuda(cudaEventElapsedTime(&ms, first.get(), second.get()), "cudaEventElapsedTime");
  return ms;
}

// The least time of each way, or kNever.
std::vector<float> OneAfterTheOther(size_t ways, const Queue& queue, cudaStream_t stream) {
  std::array<CudaEvent, kRuns + 1> between;
  for (CudaEvent& event : between) event = NewCudaEvent(true);
  std::vector<float> least_ms(ways, kNever);
  for (size_t way = 0; way < ways; ++way) {
    // The first run is not timed and may load kernels. While it keeps the device busy, the host queues the others, so
    // that they follow each other without gaps, unless they are shorter than the time to queue them.
    if (!queue(way)) continue;
    Record(between[0], stream);
    for (size_t run = 1; run <= kRuns; ++run) {
      queue(way);
      Record(between[run], stream);
    }
    WaitFor(stream);
    // Disturbances make a run longer, never shorter.
    for (size_t run = 1; run <= kRuns; ++run) {
      least_ms[way] = std::min(least_ms[way], MillisecondsBetween(between[run - 1], between[run]));
    }
  }
  return least_ms;
}

// Returns the middle time of each way, or kNever. Clocks change with the load, so the least time would be chance.
std::vector<float> InTurns(size_t ways, const Queue& queue, cudaStream_t stream, StepLoad& load) {
  std::vector<size_t> can_run;
  for (size_t way = 0; way < ways; ++way) {
    if (queue(way)) can_run.push_back(way);
  }
  std::vector<float> middle_ms(ways, kNever);
  if (can_run.empty()) return middle_ms;
  WaitFor(stream);
  const auto began = std::chrono::steady_clock::now();
  while (std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count() < load.seconds) {
    for (const size_t way : can_run) queue(way);
    WaitFor(stream);
  }
  load.seconds = 0;

  const CudaEvent begin = NewCudaEvent(true);
  const CudaEvent end = NewCudaEvent(true);
  std::vector<std::array<float, kRuns>> ms(ways);
  for (size_t run = 0; run < kRuns; ++run) {
    for (const size_t way : can_run) {
      // It keeps the device busy while the host queues the rest.
      load.take_other_data();
      Record(begin, stream);
      queue(way);
      Record(end, stream);
      WaitFor(stream);
      ms[way][run] = MillisecondsBetween(begin, end);
    }
  }
  for (const size_t way : can_run) {
    std::ranges::nth_element(ms[way], ms[way].begin() + kRuns / 2);
    middle_ms[way] = ms[way][kRuns / 2];
  }
  return middle_ms;
}

}  // namespace

std::optional<size_t> Fastest(size_t ways, const Queue& queue, cudaStream_t stream, StepLoad* load) {
  const std::vector<float> ms =
      load == nullptr ? OneAfterTheOther(ways, queue, stream) : InTurns(ways, queue, stream, *load);
  const float least = ways == 0 ? kNever : *std::ranges::min_element(ms);
  if (least == kNever) return std::nullopt;
  const auto first = std::ranges::find_if(ms, [&](float of_way) { return of_way <= kNoise * least; });
  return static_cast<size_t>(first - ms.begin());
}

}  // namespace ridgeline::engine
