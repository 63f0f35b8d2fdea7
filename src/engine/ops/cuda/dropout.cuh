// Sums and dropout of a vector of elements.
#pragma once

#include <cstdint>

#include "engine/ops/cuda/floats.cuh"
#include "engine/ops/elementwise.h"
#include "engine/ops/philox.h"

namespace ridgeline::engine {

struct AddOp {
  template <int kVec>
  __device__ Floats<kVec> operator()(int64_t /*i*/, const Floats<kVec>& a, const Floats<kVec>& b) const {
    return ForEach([](float x, float y) { return x + y; }, a, b);
  }
};

// The random numbers of a stream. The step's inputs are read on the device.
struct Random {
  const StepInputs* inputs = nullptr;
  uint32_t stream = 0;
  int64_t first = 0;

  // For elements [i, i + kVec).
  template <int kVec>
  __device__ void Fill(uint32_t (&bits)[kVec], int64_t i) const {
    const uint64_t seed = inputs->seed;
    const int64_t step = inputs->step;
    if constexpr (kVec == 1) {
      bits[0] = RandomBits(seed, step, stream, first + i);
    } else {
      static_assert(kVec % 4 == 0);
      const auto group = static_cast<uint64_t>(first + i) / 4;
      const auto shift = static_cast<int>(first % 4);  // the same for all threads
      uint32_t words[kVec + 4] = {};
      for (int g = 0; g < kVec / 4; ++g) {
        const PhiloxWords four = RandomGroup(seed, step, stream, group + static_cast<uint64_t>(g));
        for (int j = 0; j < 4; ++j) words[4 * g + j] = four.of[j];
      }
      if (shift != 0) {
        const PhiloxWords four = RandomGroup(seed, step, stream, group + kVec / 4);
        for (int j = 0; j < 4; ++j) words[kVec + j] = four.of[j];
      }
      for (int j = 0; j < kVec; ++j) {
        bits[j] = shift < 2 ? (shift == 0 ? words[j] : words[j + 1]) : (shift == 2 ? words[j + 2] : words[j + 3]);
      }
    }
  }
};

struct DropoutOp {
  Random random;
  uint32_t threshold = 0;
  float scale = 1;

  template <int kVec>
  __device__ Floats<kVec> operator()(int64_t i, const Floats<kVec>& x) const {
    uint32_t bits[kVec];
    random.Fill(bits, i);
    Floats<kVec> out;
    for (int j = 0; j < kVec; ++j) out.of[j] = bits[j] < threshold ? 0.0F : __fmul_rn(x.of[j], scale);
    return out;
  }
  template <int kVec>
  __device__ Floats<kVec> operator()(int64_t i, const Floats<kVec>& x, const Floats<kVec>& residual) const {
    return ForEach([](float a, float b) { return __fadd_rn(a, b); }, operator()<kVec>(i, x), residual);
  }
};
inline DropoutOp MakeDropout(const StepInputs* inputs, const DropoutAttrs& attrs) {
  return {{inputs, attrs.stream, attrs.first}, DropoutThreshold(attrs.p), static_cast<float>(1 / (1 - attrs.p))};
}

}  // namespace ridgeline::engine
