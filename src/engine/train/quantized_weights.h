// Weights that are kept as codes, between steps: made from the first numbers, and read as numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "engine/device/cpu/executor.h"
#include "engine/device/layout.h"
#include "engine/device/trace.h"
#include "engine/shard/parameter_store.h"

namespace ridgeline {

// Elements [first, first + to.size()) of the matrix that q stands for.
void ReadQuantized(CpuExecutor& executor, const QuantizedTensor& q, int64_t first, std::span<float> to);

// Makes a weight's first codes, to nearest, on a slab of its own: 2 bytes an element beside the codes, for as long as
// it lives.
class FirstCodes {
 public:
  explicit FirstCodes(const ParameterState& state);
  FirstCodes(const FirstCodes&) = delete;
  FirstCodes& operator=(const FirstCodes&) = delete;

  // The weight in bf16, to be filled.
  std::span<uint16_t> numbers();
  // Quantizes it to where `state` has its codes in the executor's slab.
  void WriteTo(CpuExecutor& executor, const ParameterState& state);

 private:
  Trace trace_;
  Tensor numbers_;
  QuantizedTensor rows_, columns_;
  DelayedScale delayed_;
  Layout layout_;
  std::unique_ptr<CpuExecutor> executor_;
};

}  // namespace ridgeline
