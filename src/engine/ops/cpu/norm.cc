#include "engine/ops/norm.h"
#include "engine/ops/cpu/kernels.h"

#include <cmath>

#include "engine/ops/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/ops/cpu/norm.cc"
#include <hwy/foreach_target.h>
// clang-format off: after foreach_target.h
#include "engine/ops/cpu/dropout-inl.h"
#include "engine/ops/cpu/simd-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace ridgeline::engine {
namespace HWY_NAMESPACE {

// The operands of a norm that first makes its x, row by row. If x exists already, `x` is nullptr.
template <typename T>
struct ResidualRows {
  const T* branch = nullptr;
  const T* residual = nullptr;
  T* x = nullptr;
  DropoutAttrs dropout = {};
  StepInputs inputs = {};
};
template <typename T, typename Op>
HWY_INLINE void AddRow(const ResidualRows<T>& rows, int64_t first, int64_t cols, const Op& op) {
  constexpr bool kSplit = kAnySplit<T>;
  const T* branch = rows.branch + first;
  const T* residual = rows.residual + first;
  ForBlocks(cols, [&](int64_t i, auto count) HWY_ATTR {
    FetchAhead(residual + i);
    Store<kSplit>(op(i, Load<kSplit>(branch + i, count), Load<kSplit>(residual + i, count)), rows.x + first + i, count);
  });
}
template <typename T>
HWY_NOINLINE void MakeRow(const ResidualRows<T>& rows, int64_t row, int64_t cols) {
  const int64_t first = row * cols;
  if (rows.dropout.p == 0) return AddRow(rows, first, cols, AddOp());
  AddRow(rows, first, cols, MakeDropout<T>(rows.inputs, rows.dropout, first));
}

// Both norms. kCenter: the additional parts of LayerNorm, the mean and the bias.
template <typename T>
struct NormRows {
  const T* x;
  const T* weight;
  const T* bias;
  T* y;
  float* mean;
  float* rstd;
  int64_t cols;
  float eps;
  bool stream;
  ResidualRows<T> sums;
};

// A function: as a lambda that the lambdas below called, it made RMSNorm in fp32 a tenth slower (GCC 12).
template <bool kCenter>
HWY_INLINE Pair Centered(Pair v, float mean) {
  return kCenter ? Minus(v, SplatPair(mean)) : v;
}

// Rows are read more than once: first from memory, then from the cache. While the last pass over a row computes, the
// next row is fetched.
template <bool kCenter, typename T>
HWY_NOINLINE void NormRange(const NormRows<T>& rows, int64_t begin, int64_t end) {
  constexpr bool kSplit = kAnySplit<T>;
  const int64_t cols = rows.cols;
  const auto row_bytes = cols * static_cast<int64_t>(sizeof(T));
  const auto scale = 1.0F / static_cast<float>(cols);
  for (int64_t row = begin; row < end; ++row) {
    const T* x = rows.x + row * cols;
    T* y = rows.y + row * cols;
    if (rows.sums.x != nullptr) MakeRow(rows.sums, row, cols);
    float mean = 0;
    if constexpr (kCenter) {
      Pair sums = SplatPair(0);
      ForBlocks(cols, [&](int64_t i, auto count) HWY_ATTR { sums = Plus(sums, Load<kSplit>(x + i, count)); });
      mean = Sum(sums) * scale;
      rows.mean[row] = mean;
    }
    Pair squares = SplatPair(0);
    ForBlocks(cols, [&](int64_t i, auto count) HWY_ATTR {
      Pair v = Centered<kCenter>(Load<kSplit>(x + i, count), mean);
      if constexpr (kCenter && std::is_same_v<decltype(count), Part>) v = Times(v, OnesWhere<kSplit>(count));
      squares = TimesPlus(v, v, squares);
    });
    const float square = kCenter ? Sum(squares) * scale : Sum(squares) / static_cast<float>(cols);
    const float rstd = 1.0F / std::sqrt(square + rows.eps);
    rows.rstd[row] = rstd;
    ForBlocks(cols, [&](int64_t i, auto count) HWY_ATTR {
      FetchAhead(x + i, row_bytes);
      const Pair normal = Times(Centered<kCenter>(Load<kSplit>(x + i, count), mean), SplatPair(rstd));
      const Pair weight = Load<kSplit>(rows.weight + i, count);
      if constexpr (kCenter) {
        Store<kSplit>(TimesPlus(normal, weight, Load<kSplit>(rows.bias + i, count)), y + i, count, rows.stream);
      } else {
        Store<kSplit>(Times(normal, weight), y + i, count, rows.stream);
      }
    });
  }
  if (rows.stream) hwy::FlushStream();
}
// Reads x, or writes it first if `sums` has branches.
template <bool kCenter, typename T, typename Operands>
void NormOf(const CpuRun& run, const Tensor& x, const Operands& on, double eps, const ResidualRows<T>& sums) {
  NormRows<T> rows = {.x = run.Data<T>(x),
                      .weight = run.Data<T>(on.reads.weight),
                      .bias = nullptr,
                      .y = run.Data<T>(on.writes.y),
                      .mean = nullptr,
                      .rstd = run.Data<float>(on.writes.rstd),
                      .cols = x.cols,
                      .eps = static_cast<float>(eps),
                      .stream = x.storage != on.writes.y.storage && Streams(run, on.writes.y),
                      .sums = sums};
  if constexpr (kCenter) {
    rows.bias = run.Data<T>(on.reads.bias);
    rows.mean = run.Data<float>(on.writes.mean);
  }
  ParallelRows(x.rows, x.cols, [&](int64_t begin, int64_t end) { NormRange<kCenter>(rows, begin, end); });
}
template <bool kCenter, typename Operands>
void Norm(const OpCall& call, const CpuRun& run, const Op<Operands, NormAttrs>& op) {
  const Operands on = call.operands(op);
  WithType(on.reads.x.dtype,
           [&](auto t) { NormOf<kCenter, decltype(t)>(run, on.reads.x, on, call.attrs(op).eps, {}); });
}
template <bool kCenter>
void ResidualNorm(const OpCall& call, const CpuRun& run, const Op<ResidualNormOperands, ResidualNormAttrs>& op) {
  const ResidualNormOperands on = call.operands(op);
  WithType(on.writes.x.dtype, [&](auto t) {
    using T = decltype(t);
    const ResidualRows<T> sums = {run.Data<T>(on.reads.branch), run.Data<T>(on.reads.residual),
                                  run.Data<T>(on.writes.x), call.attrs(op).dropout, run.Inputs(on.reads.inputs)};
    NormOf<kCenter, T>(run, on.writes.x, on, call.attrs(op).eps, sums);
  });
}
void RmsNormCpu(const OpCall& call, const CpuRun& run, KernelState* /*state*/) { Norm<false>(call, run, kRmsNorm); }
void LayerNormCpu(const OpCall& call, const CpuRun& run, KernelState* /*state*/) { Norm<true>(call, run, kLayerNorm); }
void ResidualRmsNormCpu(const OpCall& call, const CpuRun& run, KernelState* /*state*/) {
  ResidualNorm<false>(call, run, kResidualRmsNorm);
}
void ResidualLayerNormCpu(const OpCall& call, const CpuRun& run, KernelState* /*state*/) {
  ResidualNorm<true>(call, run, kResidualLayerNorm);
}

template <typename T>
struct BackwardRows {
  const T* dy;
  const T* x;
  const T* weight;
  const float* mean;
  const float* rstd;
  T* dx;
  int64_t cols;
  bool overwrite_dx;
};

// With n = (x - mean) rstd and g = dy weight: dx = rstd (g - mean(g) - n mean(g n)); dweight = sum of dy n, dbias = sum
// of dy. The sums over these rows go to dweight and dbias, in the order of Pairs.
template <bool kCenter, bool kSplit, typename T>
HWY_NOINLINE void NormBackwardRange(const BackwardRows<T>& rows, int64_t begin, int64_t end, float* dweight,
                                    float* dbias) {
  const int64_t cols = rows.cols;
  const auto row_bytes = cols * static_cast<int64_t>(sizeof(T));
  const auto scale = 1.0F / static_cast<float>(cols);
  ForBlocks(cols, [&](int64_t i, auto) HWY_ATTR {
    Store<false>(SplatPair(0), dweight + i, Full());
    if constexpr (kCenter) Store<false>(SplatPair(0), dbias + i, Full());
  });
  for (int64_t row = begin; row < end; ++row) {
    const T* dy = rows.dy + row * cols;
    const T* x = rows.x + row * cols;
    T* dx = rows.dx + row * cols;
    const float rstd = rows.rstd[row];
    const float mean = kCenter ? rows.mean[row] : 0.0F;
    const auto normal = [&](int64_t i, auto count) HWY_ATTR {
      const Pair v = Load<kSplit>(x + i, count);
      return Times(kCenter ? Minus(v, SplatPair(mean)) : v, SplatPair(rstd));
    };
    Pair g_sums = SplatPair(0);
    Pair gn_sums = SplatPair(0);
    ForBlocks(cols, [&](int64_t i, auto count) HWY_ATTR {
      const Pair g = Times(Load<kSplit>(dy + i, count), Load<kSplit>(rows.weight + i, count));
      if constexpr (kCenter) g_sums = Plus(g_sums, g);
      gn_sums = TimesPlus(g, normal(i, count), gn_sums);
      FetchAhead(dx + i);
    });
    const Pair g_mean = SplatPair(kCenter ? Sum(g_sums) * scale : 0.0F);
    const Pair gn_mean = SplatPair(Sum(gn_sums) * scale);
    ForBlocks(cols, [&](int64_t i, auto count) HWY_ATTR {
      FetchAhead(x + i, row_bytes);
      FetchAhead(dy + i, row_bytes);
      const Pair d = Load<kSplit>(dy + i, count);
      const Pair n = normal(i, count);
      Store<false>(TimesPlus(d, n, Load<false>(dweight + i, Full())), dweight + i, Full());
      if constexpr (kCenter) Store<false>(Plus(d, Load<false>(dbias + i, Full())), dbias + i, Full());
      const Pair g = Times(d, Load<kSplit>(rows.weight + i, count));
      const Pair centered = kCenter ? Minus(g, g_mean) : g;
      const Pair gradient = Times(MinusTimes(n, gn_mean, centered), SplatPair(rstd));
      Store<kSplit>(rows.overwrite_dx ? gradient : Plus(Load<kSplit>(dx + i, count), gradient), dx + i, count);
    });
  }
}

template <bool kCenter, typename Operands>
void NormBackward(const OpCall& call, const CpuRun& run, const Op<Operands, NormBackwardAttrs>& op) {
  const Operands on = call.operands(op);
  const NormBackwardAttrs& attrs = call.attrs(op);
  const Tensor& x = on.reads.x;
  const int64_t stride = on.scratch.parts.cols;
  const int64_t part_count = on.scratch.parts.rows / (kCenter ? 2 : 1);
  float* const parts = run.Data<float>(on.scratch.parts);
  float* const dbias_parts = parts + part_count * stride;
  WithType(x.dtype, [&](auto t) {
    using T = decltype(t);
    BackwardRows<T> rows = {.dy = run.Data<T>(on.reads.dy),
                            .x = run.Data<T>(x),
                            .weight = run.Data<T>(on.reads.weight),
                            .mean = nullptr,
                            .rstd = run.Data<float>(on.reads.rstd),
                            .dx = run.Data<T>(on.writes.dx),
                            .cols = x.cols,
                            .overwrite_dx = attrs.overwrite_dx};
    if constexpr (kCenter) rows.mean = run.Data<float>(on.reads.mean);
    WithType(on.writes.dweight.dtype, [&](auto u) {
      using D = decltype(u);
      constexpr bool kSplit = kAnySplit<T, D>;
      ParallelFor(part_count, 1, [&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; ++p) {
          NormBackwardRange<kCenter, kSplit>(rows, x.rows * p / part_count, x.rows * (p + 1) / part_count,
                                             parts + p * stride, dbias_parts + p * stride);
        }
      });
      const auto add_up = [&](const float* from, const Tensor& to) {
        AddUpParts<kSplit>(from, part_count, stride, run.Data<D>(to), x.cols, attrs.accumulate);
      };
      add_up(parts, on.writes.dweight);
      if constexpr (kCenter) add_up(dbias_parts, on.writes.dbias);
    });
  });
}
void RmsNormBackwardCpu(const OpCall& call, const CpuRun& run, KernelState* /*state*/) {
  NormBackward<false>(call, run, kRmsNormBackward);
}
void LayerNormBackwardCpu(const OpCall& call, const CpuRun& run, KernelState* /*state*/) {
  NormBackward<true>(call, run, kLayerNormBackward);
}

}  // namespace HWY_NAMESPACE
}  // namespace ridgeline::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridgeline::engine {
HWY_EXPORT(RmsNormCpu);
HWY_EXPORT(ResidualRmsNormCpu);
HWY_EXPORT(ResidualLayerNormCpu);
HWY_EXPORT(RmsNormBackwardCpu);
HWY_EXPORT(LayerNormCpu);
HWY_EXPORT(LayerNormBackwardCpu);

void AddNormCpu(CpuKernelTable& table) {
  ChooseTarget();
  table[&kRmsNorm].run = HWY_DYNAMIC_DISPATCH(RmsNormCpu);
  table[&kResidualRmsNorm].run = HWY_DYNAMIC_DISPATCH(ResidualRmsNormCpu);
  table[&kResidualLayerNorm].run = HWY_DYNAMIC_DISPATCH(ResidualLayerNormCpu);
  table[&kRmsNormBackward].run = HWY_DYNAMIC_DISPATCH(RmsNormBackwardCpu);
  table[&kLayerNorm].run = HWY_DYNAMIC_DISPATCH(LayerNormCpu);
  table[&kLayerNormBackward].run = HWY_DYNAMIC_DISPATCH(LayerNormBackwardCpu);
}

}  // namespace ridgeline::engine
#endif
