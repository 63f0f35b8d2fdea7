// Predicts memory exactly: traces the step program on the meta device and plans it, as the real run does.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "ridgeline/run.h"

namespace ridgeline::predict {

struct MemoryForecast {
  int64_t planned_peak_bytes = 0;              // the slab of one rank
  std::map<std::string, int64_t> by_category;  // parameters, gradients, optimizer, activations, workspace, logits, …
};

// Takes milliseconds. The spec must be canonical and checked. Throws Error(kInvalidInput) if it cannot be traced.
MemoryForecast PredictMemory(const RunSpec& spec);

// Returns a spec with few micro-steps whose plan gives the plan of `spec` to the byte (a test holds both to it). After
// the first few, a micro-step needs no memory that earlier ones did not need, except its tokens. This saves work for
// points that differ only in their number of micro-steps. With several ranks it returns `spec` itself: ranks gather
// weights ahead, from one micro-step into the next, so the gaps between storages depend on the number of micro-steps.
RunSpec WithFewMicroSteps(const RunSpec& spec);
// The forecast of `spec`, from that of WithFewMicroSteps(spec).
MemoryForecast WithAllMicroSteps(MemoryForecast few, const RunSpec& spec);

// Bytes that a process needs besides the slab: image, libraries, thread stacks and scratch. docs/engine.md has the
// measurements, and a test holds runs to this bound.
inline constexpr int64_t kProcessBaseBytes = 96'000'000;

// Bytes of GPU memory that the CUDA context takes. Assumed: nvidia-smi shows 0.4 to 0.6 GB for processes with a
// context.
inline constexpr int64_t kGpuContextBytes = 600'000'000;

}  // namespace ridgeline::predict
