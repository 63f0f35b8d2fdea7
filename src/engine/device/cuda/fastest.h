// The fastest of several ways to do one thing, by the device's clock.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <optional>

namespace ridgeline::engine {

// The conditions of a step, for measurements outside of a step: the device has been busy for a while, so that its
// clocks are those of a step, and its caches hold other data.
struct StepLoad {
  double seconds = 0;                     // how long the device must still be busy before anything is timed
  std::function<void()> take_other_data;  // queues work that fills its caches; is not timed
};

// Runs each of `ways` a few times on the stream, and waits for them. `queue` queues one run of a way, or returns false
// if it cannot run. Ways within 2 % of the fastest count as equally fast, because that is noise. The first of those is
// chosen, so that the choice does not change between measurements. Returns nothing if none can run. Throws what
// CheckCuda throws. With `load`, the ways run in turns under it, and the middle of a way's times counts. Otherwise one
// way runs after the other, and the least of its times counts. REQUIRES: the stream is not being captured.
std::optional<size_t> Fastest(size_t ways, const std::function<bool(size_t way)>& queue, cudaStream_t stream,
                              StepLoad* load = nullptr);

}  // namespace ridgeline::engine
