// Runs recorded ops without a planner. Every storage lies in its own buffer between guard bytes, and every call is
// checked against its declarations.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/split_mix.h"
#include "engine/device/cpu/kernel.h"
#include "engine/device/trace.h"
#include "engine/memory/planner.h"
#include "engine/tensor/fp16.h"
#include "tests/engine/ops/hazard.h"
#include "tests/engine/ops/op_kernels.h"

namespace ridgeline::engine {

// The inputs that most ops compute with.
inline constexpr DType kFloats[] = {DType::kF32, DType::kBF16, DType::kF16};

// Round to nearest, ties to even; NaN stays NaN.
inline uint16_t Bf16Bits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}
inline float Bf16Value(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}
// `value` rounded to `dtype`.
inline float Rounded(float value, DType dtype) {
  if (dtype == DType::kF16) return FromFp16(ToFp16(value));
  return dtype == DType::kBF16 ? Bf16Value(Bf16Bits(value)) : value;
}

// Nearly normal random numbers, up to 3.46 standard deviations: sums of four 16-bit numbers. The standard library's
// take a logarithm each. Under sanitizers they took most of the time of the products' tests.
inline std::vector<float> NormalFloats(int64_t count, uint32_t seed, float scale = 1) {
  constexpr float kMean = 2 * 65535.0F;
  constexpr float kDeviation = 37837.2F;  // 65536 / √3
  SplitMix64 numbers(seed);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) {
    const uint64_t z = numbers.Next();
    const uint64_t sum = (z & 0xFFFF) + ((z >> 16) & 0xFFFF) + ((z >> 32) & 0xFFFF) + (z >> 48);
    value = (static_cast<float>(sum) - kMean) / kDeviation * scale;
  }
  return values;
}

// The device that tests record for; a test of another device's kernels sets it.
inline DeviceDescription& RecordedFor() {
  static DeviceDescription device;
  return device;
}

class OpRunner {
 public:
  Trace trace{RecordedFor()};              // record ops on it, then Run
  CollectiveQueue* collectives = nullptr;  // needed by collectives

  // A tensor with these contents at the beginning of Run. Pass integers as floats; they must be exact.
  Tensor Make(DType dtype, int64_t rows, int64_t cols, std::vector<float> values) {
    EXPECT_EQ(static_cast<int64_t>(values.size()), rows * cols);
    const Tensor tensor = trace.Persistent(dtype, rows, cols, Category::kData);
    Fill(tensor.storage, dtype, std::move(values));
    return tensor;
  }
  // The same for a storage that was already recorded.
  void Fill(StorageId storage, DType dtype, std::vector<float> values) {
    contents_[storage] = {dtype, std::move(values)};
  }
  // Contents: normal random numbers (rounded to the dtype).
  Tensor Normal(DType dtype, int64_t rows, int64_t cols, uint32_t seed, float scale = 1) {
    return Make(dtype, rows, cols, NormalFloats(rows * cols, seed, scale));
  }
  // Without contents: NaN before an op writes it (like the temporaries that ops allocate themselves).
  Tensor Empty(DType dtype, int64_t rows, int64_t cols) { return trace.Persistent(dtype, rows, cols, Category::kData); }

  // Runs the trace from the initial contents. Fails the test if a kernel touches what its call does not declare.
  void Run(const OpKernels& kernels, const StepInputs& inputs = {}) {
    LayOut();
    states_.clear();
    const CpuRun run = Slab();
    for (const OpCall& call : trace.calls()) states_.push_back(kernels.prepare(call, run, SlabBytes(run)));
    Continue(kernels, inputs);
  }
  // Runs the trace again, on the data that the last run left.
  void Continue(const OpKernels& kernels, const StepInputs& inputs = {}) {
    const CpuRun run = Slab();
    const std::span<std::byte> slab = SlabBytes(run);
    if (trace.inputs().defined()) *run.Data<StepInputs>(trace.inputs()) = inputs;
    for (size_t i = 0; i < trace.calls().size(); ++i) {
      const OpCall& call = trace.calls()[i];
      RunOnWhatItDeclares(call, run.offsets, slab, [&] { kernels.run(call, run, slab, states_[i].get()); });
      if (::testing::Test::HasFatalFailure()) return;
    }
  }

  // The elements of a tensor (a view too), row by row.
  std::vector<float> Read(const Tensor& tensor) {
    const CpuRun run = Slab();
    std::vector<float> values;
    values.reserve(static_cast<size_t>(tensor.elements()));
    for (int64_t row = 0; row < tensor.rows; ++row) {
      for (int64_t col = 0; col < tensor.cols; ++col) {
        const int64_t at = row * tensor.row_stride + col;
        switch (tensor.dtype) {
          case DType::kF32:
            values.push_back(run.Data<float>(tensor)[at]);
            break;
          case DType::kBF16:
            values.push_back(Bf16Value(run.Data<uint16_t>(tensor)[at]));
            break;
          case DType::kF16:
            values.push_back(FromFp16(run.Data<uint16_t>(tensor)[at]));
            break;
          case DType::kI16:
            values.push_back(run.Data<int16_t>(tensor)[at]);
            break;
          case DType::kI32:
            values.push_back(static_cast<float>(run.Data<int32_t>(tensor)[at]));
            break;
          case DType::kU8:
            values.push_back(run.Data<uint8_t>(tensor)[at]);
            break;
        }
      }
    }
    return values;
  }
  // The bytes from a tensor's first to its last, to compare bit by bit.
  std::vector<std::byte> Bytes(const Tensor& tensor) const {
    const auto begin =
        slab_.begin() + Base() + offsets_[static_cast<size_t>(tensor.storage)] + tensor.offset * SizeOf(tensor.dtype);
    return {begin, begin + ((tensor.rows - 1) * tensor.row_stride + tensor.cols) * SizeOf(tensor.dtype)};
  }

 private:
  static constexpr std::byte kPoison{0xff};  // NaN as fp32, bf16 and fp16
  static constexpr int64_t kAlign = kSlabAlignment;
  struct Contents {
    DType dtype;
    std::vector<float> values;
  };

  CpuRun Slab() { return {slab_.data() + Base(), offsets_.data(), collectives}; }
  std::span<std::byte> SlabBytes(const CpuRun& run) { return {run.slab, slab_.size() - static_cast<size_t>(Base())}; }
  int64_t Base() const {
    const auto address = reinterpret_cast<uintptr_t>(slab_.data());
    return static_cast<int64_t>((kAlign - address % kAlign) % kAlign);
  }

  void LayOut() {
    offsets_.clear();
    int64_t end = kAlign;
    for (const Storage& storage : trace.storages()) {
      offsets_.push_back(end);
      end = AlignUp(end + storage.bytes) + kAlign;
    }
    slab_.assign(static_cast<size_t>(end + kAlign), kPoison);
    for (const auto& [storage, contents] : contents_) Write(storage, contents);
  }

  void Write(StorageId storage, const Contents& contents) {
    std::byte* to = slab_.data() + Base() + offsets_[static_cast<size_t>(storage)];
    for (const float value : contents.values) {
      switch (contents.dtype) {
        case DType::kF32:
          to = Put(to, value);
          break;
        case DType::kBF16:
          to = Put(to, Bf16Bits(value));
          break;
        case DType::kF16:
          to = Put(to, ToFp16(value));
          break;
        case DType::kI16:
          to = Put(to, static_cast<int16_t>(value));
          break;
        case DType::kI32:
          to = Put(to, static_cast<int32_t>(value));
          break;
        case DType::kU8:
          to = Put(to, static_cast<uint8_t>(value));
          break;
      }
    }
  }
  template <typename T>
  static std::byte* Put(std::byte* to, T value) {
    std::memcpy(to, &value, sizeof value);
    return to + sizeof value;
  }

  std::map<StorageId, Contents> contents_;
  std::vector<std::byte> slab_;
  std::vector<int64_t> offsets_;
  std::vector<std::shared_ptr<KernelState>> states_;
};

}  // namespace ridgeline::engine
