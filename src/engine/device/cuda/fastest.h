// The fastest of several ways to do one thing, by the device's clock.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <optional>

namespace ridgeline {

// Runs each of `ways` a few times on the stream, and waits for them. `queue` queues one run of a way, or returns false
// if it cannot run. Ways within 2 % of the fastest count as equally fast, because that is noise. Of those the first is
// chosen, so that the choice does not change between measurements. Nothing if none can run. Throws as CheckCuda.
// REQUIRES: the stream is not being captured.
std::optional<size_t> Fastest(size_t ways, const std::function<bool(size_t way)>& queue, cudaStream_t stream);

}  // namespace ridgeline
