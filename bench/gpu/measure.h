// What gpu_measure prints of the GPU that is here (measure.cc).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "engine/device/cuda/executor.h"
#include "engine/device/layout.h"
#include "engine/device/trace.h"

namespace ridgeline {

// A trace of one product, on a device that runs it over and over.
class OneProduct {
 public:
  explicit OneProduct(const engine::Trace& trace);

  // Writes ordinary numbers of the tensor's format, all bits of them drawn: of zeros a product takes less power, and
  // less time.
  void Fill(const engine::Tensor& tensor);
  // The shortest of `most` runs, or of those that a moment has room for, behind one that warms up.
  int64_t LeastNs(int most);

 private:
  engine::Layout layout_;
  std::unique_ptr<engine::CudaExecutor> executor_;
};

// The speed of copies of several sizes within the device's memory, and of a product of bf16 matrices of so many rows
// and columns.
void PrintCeilings(int64_t rows);
// The device as cuDNN describes it, in JSON: plans can be made for it where it is not.
void PrintDevice();
// Every product of a step of these models, of all presets where none is named, in every precision that the device
// multiplies: its speed, or what cuBLASLt says that it lacks. False where it lacks one.
bool PrintProducts(int64_t tokens, std::span<const std::string_view> models);

}  // namespace ridgeline
