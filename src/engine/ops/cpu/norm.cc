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
namespace ridgeline {
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
template <typename T>
ResidualRows<T> ResidualRowsOf(const OpCall& call, const CpuRun& run,
                               const Op<ResidualNormOperands, ResidualNormAttrs>& op) {
  const ResidualNormOperands on = call.operands(op);
  return {run.Data<T>(on.reads.branch), run.Data<T>(on.reads.residual), run.Data<T>(on.writes.x),
          call.attrs(op).dropout, run.Inputs(on.reads.inputs)};
}

// Rows are read more than once: first from memory, then from the cache. While the last pass over a row computes, the
// next row is fetched.
template <typename T>
struct RmsRows {
  const T* x;
  const T* weight;
  T* y;
  float* rstd;
  int64_t cols;
  float eps;
  bool stream;
  ResidualRows<T> sums = {};
};
template <typename T>
HWY_NOINLINE void RmsNormRange(const RmsRows<T>& rows, int64_t begin, int64_t end) {
  constexpr bool kSplit = kAnySplit<T>;
  const int64_t cols = rows.cols;
  const auto row_bytes = cols * static_cast<int64_t>(sizeof(T));
  for (int64_t row = begin; row < end; ++row) {
    const T* x = rows.x + row * cols;
    T* y = rows.y + row * cols;
    if (rows.sums.x != nullptr) MakeRow(rows.sums, row, cols);
    Pair squares = SplatPair(0);
    ForBlocks(cols, [&](int64_t i, auto count) HWY_ATTR {
      const Pair v = Load<kSplit>(x + i, count);
      squares = TimesPlus(v, v, squares);
    });
    const float rstd = 1.0F / std::sqrt(Sum(squares) / static_cast<float>(cols) + rows.eps);
    rows.rstd[row] = rstd;
    ForBlocks(cols, [&](int64_t i, auto count) HWY_ATTR {
      FetchAhead(x + i, row_bytes);
      const Pair normal = Times(Load<kSplit>(x + i, count), SplatPair(rstd));
      Store<kSplit>(Times(normal, Load<kSplit>(rows.weight + i, count)), y + i, count, rows.stream);
    });
  }
  if (rows.stream) hwy::FlushStream();
}
// Arguments are named as the call's operands. x is read, or written first if `sums` has branches.
template <typename T, typename Reads, typename Writes>
void RmsNormRows(const CpuRun& run, const Tensor& x, const Reads& reads, const Writes& writes, double eps,
                 const ResidualRows<T>& sums) {
  const RmsRows<T> rows = {run.Data<T>(x),
                           run.Data<T>(reads.weight),
                           run.Data<T>(writes.y),
                           run.Data<float>(writes.rstd),
                           x.cols,
                           static_cast<float>(eps),
                           x.storage != writes.y.storage && Streams(run, writes.y),
                           sums};
  ParallelRows(x.rows, x.cols, [&](int64_t begin, int64_t end) { RmsNormRange(rows, begin, end); });
}
void RmsNormCpu(const OpCall& call, const CpuRun& run, KernelState* /*state*/) {
  const auto on = call.operands(kRmsNorm);
  WithType(on.reads.x.dtype, [&](auto t) {
    RmsNormRows<decltype(t)>(run, on.reads.x, on.reads, on.writes, call.attrs(kRmsNorm).eps, {});
  });
}
void ResidualRmsNormCpu(const OpCall& call, const CpuRun& run, KernelState* /*state*/) {
  const auto on = call.operands(kResidualRmsNorm);
  WithType(on.writes.x.dtype, [&](auto t) {
    using T = decltype(t);
    RmsNormRows<T>(run, on.writes.x, on.reads, on.writes, call.attrs(kResidualRmsNorm).eps,
                   ResidualRowsOf<T>(call, run, kResidualRmsNorm));
  });
}

template <typename T>
struct LayerRows {
  const T* x;
  const T* weight;
  const T* bias;
  T* y;
  float* mean;
  float* rstd;
  int64_t cols;
  float eps;
  bool stream;
  ResidualRows<T> sums = {};
};
template <typename T>
HWY_NOINLINE void LayerNormRange(const LayerRows<T>& rows, int64_t begin, int64_t end) {
  constexpr bool kSplit = kAnySplit<T>;
  const int64_t cols = rows.cols;
  const auto row_bytes = cols * static_cast<int64_t>(sizeof(T));
  const auto scale = 1.0F / static_cast<float>(cols);
  for (int64_t row = begin; row < end; ++row) {
    const T* x = rows.x + row * cols;
    T* y = rows.y + row * cols;
    if (rows.sums.x != nullptr) MakeRow(rows.sums, row, cols);
    Pair sums = SplatPair(0);
    ForBlocks(cols, [&](int64_t i, auto count) HWY_ATTR { sums = Plus(sums, Load<kSplit>(x + i, count)); });
    const float mean = Sum(sums) * scale;
    Pair squares = SplatPair(0);
    ForBlocks(cols, [&](int64_t i, auto count) HWY_ATTR {
      Pair off = Minus(Load<kSplit>(x + i, count), SplatPair(mean));
      if constexpr (std::is_same_v<decltype(count), Part>) off = Times(off, OnesWhere<kSplit>(count));
      squares = TimesPlus(off, off, squares);
    });
    const float rstd = 1.0F / std::sqrt(Sum(squares) * scale + rows.eps);
    rows.mean[row] = mean;
    rows.rstd[row] = rstd;
    ForBlocks(cols, [&](int64_t i, auto count) HWY_ATTR {
      FetchAhead(x + i, row_bytes);
      const Pair normal = Times(Minus(Load<kSplit>(x + i, count), SplatPair(mean)), SplatPair(rstd));
      Store<kSplit>(TimesPlus(normal, Load<kSplit>(rows.weight + i, count), Load<kSplit>(rows.bias + i, count)), y + i,
                    count, rows.stream);
    });
  }
  if (rows.stream) hwy::FlushStream();
}
template <typename T, typename Reads, typename Writes>
void LayerNormRows(const CpuRun& run, const Tensor& x, const Reads& reads, const Writes& writes, double eps,
                   const ResidualRows<T>& sums) {
  const LayerRows<T> rows = {run.Data<T>(x),
                             run.Data<T>(reads.weight),
                             run.Data<T>(reads.bias),
                             run.Data<T>(writes.y),
                             run.Data<float>(writes.mean),
                             run.Data<float>(writes.rstd),
                             x.cols,
                             static_cast<float>(eps),
                             x.storage != writes.y.storage && Streams(run, writes.y),
                             sums};
  ParallelRows(x.rows, x.cols, [&](int64_t begin, int64_t end) { LayerNormRange(rows, begin, end); });
}
void LayerNormCpu(const OpCall& call, const CpuRun& run, KernelState* /*state*/) {
  const auto on = call.operands(kLayerNorm);
  WithType(on.reads.x.dtype, [&](auto t) {
    LayerNormRows<decltype(t)>(run, on.reads.x, on.reads, on.writes, call.attrs(kLayerNorm).eps, {});
  });
}
void ResidualLayerNormCpu(const OpCall& call, const CpuRun& run, KernelState* /*state*/) {
  const auto on = call.operands(kResidualLayerNorm);
  WithType(on.writes.x.dtype, [&](auto t) {
    using T = decltype(t);
    LayerNormRows<T>(run, on.writes.x, on.reads, on.writes, call.attrs(kResidualLayerNorm).eps,
                     ResidualRowsOf<T>(call, run, kResidualLayerNorm));
  });
}

// Both norms' backward passes. kCenter: the additional parts of LayerNorm, the mean and the bias.
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

template <bool kCenter, typename T, typename D>
void NormBackward(const BackwardRows<T>& rows, int64_t count, float* parts, int64_t part_count, int64_t stride,
                  D* dweight, D* dbias, bool accumulate) {
  constexpr bool kSplit = kAnySplit<T, D>;
  float* dbias_parts = parts + part_count * stride;
  ParallelFor(part_count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      NormBackwardRange<kCenter, kSplit>(rows, count * p / part_count, count * (p + 1) / part_count, parts + p * stride,
                                         dbias_parts + p * stride);
    }
  });
  AddUpParts<kSplit>(parts, part_count, stride, dweight, rows.cols, accumulate);
  if constexpr (kCenter) AddUpParts<kSplit>(dbias_parts, part_count, stride, dbias, rows.cols, accumulate);
}

void RmsNormBackwardCpu(const OpCall& call, const CpuRun& run, KernelState* /*state*/) {
  const RmsNormBackwardOperands on = call.operands(kRmsNormBackward);
  const Tensor& x = on.reads.x;
  const Tensor& dweight = on.writes.dweight;
  const Tensor& parts = on.scratch.parts;
  const NormBackwardAttrs& attrs = call.attrs(kRmsNormBackward);
  WithType(x.dtype, [&](auto t) {
    using T = decltype(t);
    const BackwardRows<T> rows = {run.Data<T>(on.reads.dy),
                                  run.Data<T>(x),
                                  run.Data<T>(on.reads.weight),
                                  nullptr,
                                  run.Data<float>(on.reads.rstd),
                                  run.Data<T>(on.writes.dx),
                                  x.cols,
                                  attrs.overwrite_dx};
    WithType(dweight.dtype, [&](auto u) {
      using D = decltype(u);
      NormBackward<false>(rows, x.rows, run.Data<float>(parts), parts.rows, parts.cols, run.Data<D>(dweight),
                          static_cast<D*>(nullptr), attrs.accumulate);
    });
  });
}

void LayerNormBackwardCpu(const OpCall& call, const CpuRun& run, KernelState* /*state*/) {
  const LayerNormBackwardOperands on = call.operands(kLayerNormBackward);
  const Tensor& x = on.reads.x;
  const Tensor& dweight = on.writes.dweight;
  const Tensor& parts = on.scratch.parts;
  const NormBackwardAttrs& attrs = call.attrs(kLayerNormBackward);
  WithType(x.dtype, [&](auto t) {
    using T = decltype(t);
    const BackwardRows<T> rows = {run.Data<T>(on.reads.dy),
                                  run.Data<T>(x),
                                  run.Data<T>(on.reads.weight),
                                  run.Data<float>(on.reads.mean),
                                  run.Data<float>(on.reads.rstd),
                                  run.Data<T>(on.writes.dx),
                                  x.cols,
                                  attrs.overwrite_dx};
    WithType(dweight.dtype, [&](auto u) {
      using D = decltype(u);
      NormBackward<true>(rows, x.rows, run.Data<float>(parts), parts.rows / 2, parts.cols, run.Data<D>(dweight),
                         run.Data<D>(on.writes.dbias), attrs.accumulate);
    });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace ridgeline
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridgeline {
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

}  // namespace ridgeline
#endif
