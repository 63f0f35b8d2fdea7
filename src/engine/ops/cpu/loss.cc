#include "engine/ops/loss.h"
#include "engine/ops/cpu/kernels.h"

#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "engine/ops/cpu/simd_targets.h"
#include "engine/tensor/bf16.h"
#include "engine/tensor/fp16.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/ops/cpu/loss.cc"
#include <hwy/foreach_target.h>
// clang-format off: after foreach_target.h
#include "engine/ops/cpu/simd-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace ridgeline::engine {
namespace HWY_NAMESPACE {

inline float ToFloat(float value) { return value; }
inline float ToFloat(uint16_t bf16) { return FromBf16(bf16); }
inline float ToFloat(F16 fp16) { return FromFp16(std::bit_cast<uint16_t>(fp16)); }

// Not a constant, because Highway 1.2 has a union in its float16_t.
template <typename T>
T MinusInfinity() {
  if constexpr (std::is_same_v<T, float>) {
    return -std::numeric_limits<float>::infinity();
  } else {
    return std::bit_cast<T>(std::is_same_v<T, F16> ? uint16_t{0xfc00} : uint16_t{0xff80});
  }
}

constexpr int64_t kPiece = 4096;  // logits processed together: they stay in the nearest cache

template <typename T>
HWY_NOINLINE float MaxOf(const T* x, int64_t n) {
  constexpr bool kSplit = kAnySplit<T>;
  VF max = Splat(-std::numeric_limits<float>::infinity());
  ForBlocks(n, [&](int64_t i, auto count) HWY_ATTR {
    const Pair v = Load<kSplit>(x + i, count, MinusInfinity<T>());
    max = hn::Max(max, hn::Max(v.a, v.b));
  });
  return hn::GetLane(hn::MaxOfLanes(DF(), max));
}
template <typename T>
HWY_NOINLINE float SumOfExp(const T* x, int64_t n, float max) {
  constexpr bool kSplit = kAnySplit<T>;
  Pair sum = SplatPair(0);
  ForBlocks(n, [&](int64_t i, auto count) HWY_ATTR {
    FetchAhead(x + i, kPiece * static_cast<int64_t>(sizeof(T)));
    const Pair v = Minus(Load<kSplit>(x + i, count, MinusInfinity<T>()), SplatPair(max));
    sum = Plus(sum, {Exp(v.a), Exp(v.b)});
  });
  return Sum(sum);
}
// x = e^(x - max) * scale
template <typename T>
HWY_NOINLINE void ToScaledExp(T* x, int64_t n, float max, float scale) {
  constexpr bool kSplit = kAnySplit<T>;
  ForBlocks(n, [&](int64_t i, auto count) HWY_ATTR {
    const Pair v = Minus(Load<kSplit>(x + i, count), SplatPair(max));
    Store<kSplit>(Times({Exp(v.a), Exp(v.b)}, SplatPair(scale)), x + i, count);
  });
}

// Returns the row's loss; logits become (softmax - onehot) * scale. They are read from memory once and written once:
// maximum and sum are found together, in pieces that stay in the nearest cache (Milakov & Gimelshein, 2018).
template <typename T>
float CrossEntropyRow(T* logits, int64_t vocab, int32_t target, double scale) {
  constexpr float kNothing = -std::numeric_limits<float>::infinity();
  float max = kNothing;
  double sum = 0;  // of e^(logit - max)
  for (int64_t i = 0; i < vocab; i += kPiece) {
    const int64_t n = std::min(kPiece, vocab - i);
    const float piece_max = MaxOf(logits + i, n);
    if (piece_max > max) {
      sum *= std::exp(static_cast<double>(max) - static_cast<double>(piece_max));
      max = piece_max;
    }
    if (max > kNothing) sum += SumOfExp(logits + i, n, max);
  }
  const double log_probability =
      static_cast<double>(ToFloat(logits[target])) - static_cast<double>(max) - std::log(sum);
  // Uses expm1, which keeps its digits if the target is nearly certain.
  const auto target_gradient = static_cast<float>(std::expm1(log_probability) * scale);
  ToScaledExp(logits, vocab, max, static_cast<float>(scale / sum));
  if constexpr (std::is_same_v<T, float>) {
    logits[target] = target_gradient;
  } else {
    Store<true>(SplatPair(target_gradient), logits + target, Part{1});
  }
  return static_cast<float>(-log_probability);
}

void CrossEntropyCpu(const OpCall& call, const CpuRun& run, KernelState* /*state*/) {
  const CrossEntropyOperands on = call.operands(kCrossEntropy);
  const Tensor& logits = on.writes.logits;
  const Tensor& factor = on.reads.factor;
  const double scale = call.attrs(kCrossEntropy).scale;
  const double gradient_scale = factor.defined() ? scale * static_cast<double>(*run.Data<float>(factor)) : scale;
  const auto* targets = run.Data<int32_t>(on.reads.targets);
  auto* loss = run.Data<float>(on.writes.loss);
  auto* row_losses = run.Data<float>(on.scratch.row_losses);
  WithType(logits.dtype, [&](auto t) {
    auto* data = run.Data<decltype(t)>(logits);
    ParallelRows(logits.rows, logits.cols, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        row_losses[row] = CrossEntropyRow(data + row * logits.row_stride, logits.cols, targets[row], gradient_scale);
      }
    });
  });
  double sum = 0;
  for (int64_t row = 0; row < logits.rows; ++row) sum += static_cast<double>(row_losses[row]);
  *loss = static_cast<float>(static_cast<double>(*loss) + sum * scale);
}

void SumLossCpu(const OpCall& call, const CpuRun& run, KernelState* /*state*/) {
  const SumLossOperands on = call.operands(kSumLoss);
  auto* loss = run.Data<float>(on.writes.loss);
  const double sum = SumElements<false>(run, on.reads.x, on.scratch.parts);
  *loss = static_cast<float>(static_cast<double>(*loss) + sum * call.attrs(kSumLoss).scale);
}

}  // namespace HWY_NAMESPACE
}  // namespace ridgeline::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridgeline::engine {
HWY_EXPORT(CrossEntropyCpu);
HWY_EXPORT(SumLossCpu);

void AddLossCpu(CpuKernelTable& table) {
  ChooseTarget();
  table[&kCrossEntropy].run = HWY_DYNAMIC_DISPATCH(CrossEntropyCpu);
  table[&kSumLoss].run = HWY_DYNAMIC_DISPATCH(SumLossCpu);
}

}  // namespace ridgeline::engine
#endif
