#include "engine/ops/loss.h"
#include "engine/ops/cpu/kernels.h"

#include <algorithm>
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

constexpr float kNothing = -std::numeric_limits<float>::infinity();

struct RowSum {
  float max = kNothing;
  double sum = 0;  // of e^(logit - max)
};

// Reads the row from memory once: maximum and sum are found together, in pieces that stay in the nearest cache (Milakov
// & Gimelshein, 2018).
template <typename T>
RowSum SumOfRow(const T* logits, int64_t vocab) {
  auto [max, sum] = RowSum();
  for (int64_t i = 0; i < vocab; i += kPiece) {
    const int64_t n = std::min(kPiece, vocab - i);
    const float piece_max = MaxOf(logits + i, n);
    if (piece_max > max) {
      sum *= std::exp(static_cast<double>(max) - static_cast<double>(piece_max));
      max = piece_max;
    }
    if (max > kNothing) sum += SumOfExp(logits + i, n, max);
  }
  return {max, sum};
}

// Returns the row's loss; logits become (softmax - onehot) * scale. `vocab`: the number of logits here, which may be a
// part of the row that `of_row` is of, and have the target or not.
template <typename T>
float CrossEntropyRow(T* logits, int64_t vocab, int64_t target, float target_logit, const RowSum& of_row,
                      double scale) {
  const double log_probability =
      static_cast<double>(target_logit) - static_cast<double>(of_row.max) - std::log(of_row.sum);
  ToScaledExp(logits, vocab, of_row.max, static_cast<float>(scale / of_row.sum));
  if (target >= 0 && target < vocab) {
    // Uses expm1, which keeps its digits if the target is nearly certain.
    const auto target_gradient = static_cast<float>(std::expm1(log_probability) * scale);
    if constexpr (std::is_same_v<T, float>) {
      logits[target] = target_gradient;
    } else {
      Store<true>(SplatPair(target_gradient), logits + target, Part{1});
    }
  }
  return static_cast<float>(-log_probability);
}

// *loss += the rows' losses * scale, added in order.
void AddLosses(const float* row_losses, int64_t rows, double scale, float* loss) {
  double sum = 0;
  for (int64_t row = 0; row < rows; ++row) sum += static_cast<double>(row_losses[row]);
  *loss = static_cast<float>(static_cast<double>(*loss) + sum * scale);
}

double GradientScale(const CpuRun& run, const Tensor& factor, double scale) {
  return factor.defined() ? scale * static_cast<double>(*run.Data<float>(factor)) : scale;
}

void CrossEntropyCpu(const OpCall& call, const CpuRun& run, KernelState* /*state*/) {
  const CrossEntropyOperands on = call.operands(kCrossEntropy);
  const Tensor& logits = on.writes.logits;
  const double scale = call.attrs(kCrossEntropy).scale;
  const double gradient_scale = GradientScale(run, on.reads.factor, scale);
  const auto* targets = run.Data<int32_t>(on.reads.targets);
  auto* row_losses = run.Data<float>(on.scratch.row_losses);
  WithType(logits.dtype, [&](auto t) {
    auto* data = run.Data<decltype(t)>(logits);
    ParallelRows(logits.rows, logits.cols, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        auto* x = data + row * logits.row_stride;
        row_losses[row] = CrossEntropyRow(x, logits.cols, targets[row], ToFloat(x[targets[row]]),
                                          SumOfRow(x, logits.cols), gradient_scale);
      }
    });
  });
  AddLosses(row_losses, logits.rows, scale, run.Data<float>(on.writes.loss));
}

void LossStatisticsCpu(const OpCall& call, const CpuRun& run, KernelState* /*state*/) {
  const LossStatisticsOperands on = call.operands(kLossStatistics);
  const Tensor& logits = on.reads.logits;
  const int64_t first = call.attrs(kLossStatistics).first;
  const int64_t rows = logits.rows;
  const auto* targets = run.Data<int32_t>(on.reads.targets);
  auto* statistics = run.Data<float>(on.writes.statistics);
  WithType(logits.dtype, [&](auto t) {
    const auto* data = run.Data<decltype(t)>(logits);
    ParallelRows(rows, logits.cols, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const auto* x = data + row * logits.row_stride;
        const auto [max, sum] = SumOfRow(x, logits.cols);
        const int64_t target = targets[row] - first;
        statistics[row] = max;
        statistics[rows + row] = static_cast<float>(sum - 1);
        statistics[2 * rows + row] = target >= 0 && target < logits.cols ? ToFloat(x[target]) : 0.0F;
      }
    });
  });
}

// Returns the maximum and the sum of a row from those of its parts.
RowSum SumOfParts(const float* statistics, int64_t rows, int64_t row, int64_t parts) {
  RowSum of_row;
  const auto part_of = [&](int64_t part) { return statistics + part * kNumbersOfLoss * rows + row; };
  for (int64_t part = 0; part < parts; ++part) of_row.max = std::max(of_row.max, *part_of(part));
  for (int64_t part = 0; part < parts; ++part) {
    const float max = part_of(part)[0];
    if (max == kNothing) continue;
    of_row.sum += (1 + static_cast<double>(part_of(part)[rows])) *
                  std::exp(static_cast<double>(max) - static_cast<double>(of_row.max));
  }
  return of_row;
}

void CrossEntropyOfPartCpu(const OpCall& call, const CpuRun& run, KernelState* /*state*/) {
  const CrossEntropyOfPartOperands on = call.operands(kCrossEntropyOfPart);
  const Tensor& logits = on.writes.logits;
  const double scale = call.attrs(kCrossEntropyOfPart).scale;
  const int64_t first = call.attrs(kCrossEntropyOfPart).first;
  const double gradient_scale = GradientScale(run, on.reads.factor, scale);
  const int64_t rows = logits.rows;
  const int64_t parts = on.reads.statistics.cols / (kNumbersOfLoss * rows);
  const auto* targets = run.Data<int32_t>(on.reads.targets);
  const auto* statistics = run.Data<float>(on.reads.statistics);
  auto* row_losses = run.Data<float>(on.scratch.row_losses);
  WithType(logits.dtype, [&](auto t) {
    auto* data = run.Data<decltype(t)>(logits);
    ParallelRows(rows, logits.cols, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        float target_logit = 0;  // the sum of one logit and zeros
        for (int64_t part = 0; part < parts; ++part) {
          target_logit += statistics[(part * kNumbersOfLoss + 2) * rows + row];
        }
        row_losses[row] = CrossEntropyRow(data + row * logits.row_stride, logits.cols, targets[row] - first,
                                          target_logit, SumOfParts(statistics, rows, row, parts), gradient_scale);
      }
    });
  });
  AddLosses(row_losses, rows, scale, run.Data<float>(on.writes.loss));
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
HWY_EXPORT(LossStatisticsCpu);
HWY_EXPORT(CrossEntropyOfPartCpu);
HWY_EXPORT(SumLossCpu);

void AddLossCpu(CpuKernelTable& table) {
  ChooseTarget();
  table[&kCrossEntropy].run = HWY_DYNAMIC_DISPATCH(CrossEntropyCpu);
  table[&kLossStatistics].run = HWY_DYNAMIC_DISPATCH(LossStatisticsCpu);
  table[&kCrossEntropyOfPart].run = HWY_DYNAMIC_DISPATCH(CrossEntropyOfPartCpu);
  table[&kSumLoss].run = HWY_DYNAMIC_DISPATCH(SumLossCpu);
}

}  // namespace ridgeline::engine
#endif
