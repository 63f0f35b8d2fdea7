// Memory, predicted exactly: the step program is traced on the meta device and planned, as the real run will be.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "ridgeline/run.h"

namespace ridgeline {

struct MemoryForecast {
  int64_t planned_peak_bytes = 0;              // the slab of one rank
  std::map<std::string, int64_t> by_category;  // parameters, gradients, optimizer, activations, workspace, logits, …
};

// Takes milliseconds. The spec must be canonical and checked. Throws Error(kInvalidInput) for what cannot be traced.
MemoryForecast PredictMemory(const RunSpec& spec);

// Micro-steps repeat: after the first few each needs nothing that those before it have not left, but its tokens, which
// a step is given together. So the plan of a step with few says that of a step with many, to the byte: a test holds it
// to both. For who has many points that differ in their number. Of several ranks it is the spec itself: they gather
// weights ahead, from one micro-step into the next, and the gaps between such storages are others where there are more.
RunSpec WithFewMicroSteps(const RunSpec& spec);
// `few`: what is predicted of WithFewMicroSteps(spec).
MemoryForecast WithAllMicroSteps(MemoryForecast few, const RunSpec& spec);

// What a process needs beside the slab: its image, libraries, thread stacks and scratch. docs/engine.md has what was
// measured, and a test holds runs to it.
inline constexpr int64_t kProcessBaseBytes = 96'000'000;

// What CUDA's context takes of a GPU's memory before the slab. Assumed: nvidia-smi shows 0.4 to 0.6 GB of processes
// that hold one.
inline constexpr int64_t kGpuContextBytes = 600'000'000;

}  // namespace ridgeline
