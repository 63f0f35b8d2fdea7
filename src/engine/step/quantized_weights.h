// Weights that are kept as codes, between steps: making them from the initial numbers, and reading them as numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/device/executor.h"
#include "engine/device/layout.h"
#include "engine/device/trace.h"
#include "engine/shard/parameter_store.h"

namespace ridgeline::engine {

// Returns elements [first, first + count) of the matrix that q represents.
std::vector<float> ReadQuantized(const Executor& executor, const QuantizedTensor& q, int64_t first, int64_t count);

// Makes a weight's first codes, rounded to nearest, on a slab of its own: 2 bytes an element besides the codes, for its
// whole life.
class FirstCodes {
 public:
  // On the device of `executor`.
  FirstCodes(const ParameterState& state, const Executor& executor);
  FirstCodes(const FirstCodes&) = delete;
  FirstCodes& operator=(const FirstCodes&) = delete;

  // Writes elements of the weight from `first` on, in bf16.
  void Write(int64_t first, std::span<const uint16_t> numbers) { executor_->Write<uint16_t>(numbers_, first, numbers); }
  // Quantizes the weight into the codes of `state` in the executor's slab.
  void WriteTo(Executor& executor, const ParameterState& state);

 private:
  Trace trace_;
  Tensor numbers_;
  QuantizedTensor rows_, columns_;
  DelayedScale delayed_;
  Layout layout_;
  std::unique_ptr<Executor> executor_;
};

}  // namespace ridgeline::engine
