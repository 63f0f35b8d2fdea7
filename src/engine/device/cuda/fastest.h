// The fastest of several ways to do one thing, by the device's clock.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <optional>

namespace ridgeline {

// Runs each of `ways` a few times on the stream, and waits for them. `queue` puts one run of a way there, or returns
// false where it cannot be run. Ways that take as long as the fastest, but for 2% which are noise, are equally fast: of
// those the first is taken, so that the choice stays from one measurement to the next. Nothing where none can be run.
// Throws as CheckCuda does. REQUIRES: the stream is not being captured.
std::optional<size_t> Fastest(size_t ways, const std::function<bool(size_t way)>& queue, cudaStream_t stream);

}  // namespace ridgeline
