#include "engine/ops/elementwise.h"
#include "engine/ops/cpu/kernels.h"

#include <cmath>

#include "engine/ops/cpu/simd_targets.h"
#include "engine/ops/philox.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/ops/cpu/elementwise.cc"
#include <hwy/foreach_target.h>
// clang-format off: after foreach_target.h
#include "engine/ops/cpu/dropout-inl.h"
#include "engine/ops/cpu/philox-inl.h"
#include "engine/ops/cpu/simd-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace ridgeline::engine {
namespace HWY_NAMESPACE {

// out[i] = op(i, in[i]…) for i in [begin, end), by blocks.
template <typename T, typename Op, typename... In>
HWY_NOINLINE void MapRange(const Op& op, int64_t begin, int64_t end, bool stream, T* out, const In*... in) {
  constexpr bool kSplit = kAnySplit<T>;
  ForBlocks(end - begin, [&](int64_t at, auto count) HWY_ATTR {
    const int64_t i = begin + at;
    (FetchAhead(in + i), ...);
    Store<kSplit>(op(i, Load<kSplit>(in + i, count)...), out + i, count, stream);
  });
  if (stream) hwy::FlushStream();
}

template <typename T, typename Op, typename... In>
void Map(const CpuRun& run, const Op& op, const Tensor& out, const In&... in) {
  const bool in_place = (... || (out.storage == in.storage));
  const bool stream = !in_place && Streams(run, out);
  ParallelElements(out.elements(), [&](int64_t begin, int64_t end) {
    MapRange<T>(op, begin, end, stream, run.Data<T>(out), static_cast<const T*>(run.Data<T>(in))...);
  });
}

// 2 sqrt(2 / pi) (x + 0.044715 x^3): gelu(x) = x * sigmoid of this, since 1 + tanh(u) = 2 sigmoid(2 u).
constexpr float kGeluLinear = 1.5957691216057308F;
constexpr float kGeluCubic = 0.07135481282553514F;

HWY_INLINE VF GeluOf(VF x) {
  const VF u = hn::Mul(x, hn::MulAdd(hn::Mul(x, x), Splat(kGeluCubic), Splat(kGeluLinear)));
  return hn::Div(x, hn::Add(Splat(1.0F), ExpOfMinus(u)));
}
HWY_INLINE VF GeluSlope(VF x) {
  const VF squared = hn::Mul(x, x);
  const VF u = hn::Mul(x, hn::MulAdd(squared, Splat(kGeluCubic), Splat(kGeluLinear)));
  const VF slope_of_u = hn::MulAdd(squared, Splat(3 * kGeluCubic), Splat(kGeluLinear));
  const VF e = ExpOfMinus(u);
  const VF s = hn::Div(Splat(1.0F), hn::Add(Splat(1.0F), e));
  return hn::MulAdd(hn::Mul(hn::Mul(x, s), hn::Mul(e, s)), slope_of_u, s);  // 1 - s = e s
}

struct GeluOp {
  HWY_INLINE Pair operator()(int64_t /*i*/, Pair x) const { return {GeluOf(x.a), GeluOf(x.b)}; }
};
struct GeluBackwardOp {
  HWY_INLINE Pair operator()(int64_t /*i*/, Pair dy, Pair x) const {
    return Times(dy, {GeluSlope(x.a), GeluSlope(x.b)});
  }
};
struct FillOp {
  float value;
  HWY_INLINE Pair operator()(int64_t /*i*/) const { return SplatPair(value); }
};

template <typename T>
struct UniformOp {
  RandomBlocks random;
  // Takes as many bits as T represents exactly, so that no rounding reaches 1.
  HWY_INLINE Pair operator()(int64_t i) const {
    constexpr int kBits = sizeof(T) == 2 ? 8 : 24;
    const auto bits = random.Block<kAnySplit<T>>(i);
    const auto scale = Splat(1.0F / static_cast<float>(1 << kBits));
    const auto a = hn::BitCast(DI(), hn::ShiftRight<32 - kBits>(bits.a));
    const auto b = hn::BitCast(DI(), hn::ShiftRight<32 - kBits>(bits.b));
    return {hn::Mul(hn::ConvertTo(DF(), a), scale), hn::Mul(hn::ConvertTo(DF(), b), scale)};
  }
};

void GeluCpu(const OpCall& call, const CpuRun& run, KernelState* /*state*/) {
  const GeluOperands on = call.operands(kGelu);
  WithType(on.reads.x.dtype, [&](auto t) { Map<decltype(t)>(run, GeluOp(), on.writes.y, on.reads.x); });
}
void GeluBackwardCpu(const OpCall& call, const CpuRun& run, KernelState* /*state*/) {
  const GeluBackwardOperands on = call.operands(kGeluBackward);
  WithType(on.reads.x.dtype,
           [&](auto t) { Map<decltype(t)>(run, GeluBackwardOp(), on.writes.dx, on.reads.dy, on.reads.x); });
}
void DropoutAddCpu(const OpCall& call, const CpuRun& run, KernelState* /*state*/) {
  const DropoutAddOperands on = call.operands(kDropoutAdd);
  const DropoutAttrs& attrs = call.attrs(kDropoutAdd);
  WithType(on.reads.x.dtype, [&](auto t) {
    using T = decltype(t);
    if (attrs.p == 0) return Map<T>(run, AddOp(), on.writes.out, on.reads.x, on.reads.residual);
    Map<T>(run, MakeDropout<T>(run.Inputs(on.reads.inputs), attrs), on.writes.out, on.reads.x, on.reads.residual);
  });
}
void DropoutBackwardCpu(const OpCall& call, const CpuRun& run, KernelState* /*state*/) {
  const DropoutBackwardOperands on = call.operands(kDropoutBackward);
  WithType(on.reads.dy.dtype, [&](auto t) {
    using T = decltype(t);
    Map<T>(run, MakeDropout<T>(run.Inputs(on.reads.inputs), call.attrs(kDropoutBackward)), on.writes.dx, on.reads.dy);
  });
}
void FillCpu(const OpCall& call, const CpuRun& run, KernelState* /*state*/) {
  const FillOperands on = call.operands(kFill);
  const float factor = on.reads.factor.defined() ? *run.Data<float>(on.reads.factor) : 1.0F;
  const FillOp op{static_cast<float>(call.attrs(kFill).value) * factor};
  WithType(on.writes.x.dtype, [&](auto t) { Map<decltype(t)>(run, op, on.writes.x); });
}
void FillUniformCpu(const OpCall& call, const CpuRun& run, KernelState* /*state*/) {
  const FillUniformOperands on = call.operands(kFillUniform);
  const StreamAttrs& attrs = call.attrs(kFillUniform);
  WithType(on.writes.x.dtype, [&](auto t) {
    using T = decltype(t);
    Map<T>(run, UniformOp<T>{{run.Inputs(on.reads.inputs), attrs.stream, attrs.first}}, on.writes.x);
  });
}

template <typename T>
HWY_NOINLINE void RopeRow(T* x, int64_t cols, const float* cos_sin, int64_t half, float sign) {
  constexpr bool kSplit = kAnySplit<T>;
  for (int64_t head = 0; head < cols; head += 2 * half) {
    T* first = x + head;
    T* second = first + half;
    ForBlocks(half, [&](int64_t i, auto count) HWY_ATTR {
      FetchAhead(first + i);
      FetchAhead(second + i);
      const Pair cos = Load<kSplit>(cos_sin + i, count);
      const Pair sin = Times(Load<kSplit>(cos_sin + half + i, count), SplatPair(sign));
      const Pair x0 = Load<kSplit>(first + i, count);
      const Pair x1 = Load<kSplit>(second + i, count);
      Store<kSplit>(MinusTimes(x1, sin, Times(x0, cos)), first + i, count);
      Store<kSplit>(TimesPlus(x0, sin, Times(x1, cos)), second + i, count);
    });
  }
}
void RopeCpu(const OpCall& call, const CpuRun& run, KernelState* /*state*/) {
  const RopeOperands on = call.operands(kRope);
  const RopeAttrs& attrs = call.attrs(kRope);
  const Tensor& x = on.writes.x;
  const auto* table = run.Data<float>(on.reads.cos_sin);
  WithType(x.dtype, [&](auto t) {
    auto* data = run.Data<decltype(t)>(x);
    ParallelRows(x.rows, x.cols, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        RopeRow(data + row * x.row_stride, x.cols, table + row % attrs.seq * attrs.head_dim, attrs.head_dim / 2,
                attrs.inverse ? -1.0F : 1.0F);
      }
    });
  });
}

template <typename T>
HWY_NOINLINE void SwiGluRow(const T* gate_up, T* y, int64_t ffn, bool stream) {
  constexpr bool kSplit = kAnySplit<T>;
  ForBlocks(ffn, [&](int64_t i, auto count) HWY_ATTR {
    FetchAhead(gate_up + i);
    FetchAhead(gate_up + ffn + i);
    const Pair gate = Load<kSplit>(gate_up + i, count);
    const Pair up = Load<kSplit>(gate_up + ffn + i, count);
    const Pair silu = {hn::Div(gate.a, hn::Add(Splat(1.0F), ExpOfMinus(gate.a))),
                       hn::Div(gate.b, hn::Add(Splat(1.0F), ExpOfMinus(gate.b)))};
    Store<kSplit>(Times(silu, up), y + i, count, stream);
  });
}
void SwiGluCpu(const OpCall& call, const CpuRun& run, KernelState* /*state*/) {
  const SwiGluOperands on = call.operands(kSwiGlu);
  const Tensor& y = on.writes.y;
  const bool stream = Streams(run, y);
  WithType(y.dtype, [&](auto t) {
    using T = decltype(t);
    const T* from = run.Data<T>(on.reads.gate_up);
    T* to = run.Data<T>(y);
    ParallelRows(y.rows, 3 * y.cols, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        SwiGluRow(from + row * 2 * y.cols, to + row * y.cols, y.cols, stream);
      }
      if (stream) hwy::FlushStream();
    });
  });
}

struct SwiGluGradient {
  VF gate, up;
};
HWY_INLINE SwiGluGradient SwiGluGradientOf(VF dy, VF gate, VF up) {
  const VF e = ExpOfMinus(gate);
  const VF s = hn::Div(Splat(1.0F), hn::Add(Splat(1.0F), e));
  const VF silu = hn::Mul(gate, s);
  return {hn::Mul(hn::Mul(dy, up), hn::MulAdd(silu, hn::Mul(e, s), s)), hn::Mul(dy, silu)};  // 1 - s = e s
}
template <typename T>
HWY_NOINLINE void SwiGluBackwardRow(const T* dy, const T* gate_up, T* d_gate_up, int64_t ffn, bool stream) {
  constexpr bool kSplit = kAnySplit<T>;
  ForBlocks(ffn, [&](int64_t i, auto count) HWY_ATTR {
    FetchAhead(dy + i);
    const Pair d = Load<kSplit>(dy + i, count);
    FetchAhead(gate_up + i);
    FetchAhead(gate_up + ffn + i);
    const Pair gate = Load<kSplit>(gate_up + i, count);
    const Pair up = Load<kSplit>(gate_up + ffn + i, count);
    const SwiGluGradient a = SwiGluGradientOf(d.a, gate.a, up.a);
    const SwiGluGradient b = SwiGluGradientOf(d.b, gate.b, up.b);
    Store<kSplit>({a.gate, b.gate}, d_gate_up + i, count, stream);
    Store<kSplit>({a.up, b.up}, d_gate_up + ffn + i, count, stream);
  });
}
void SwiGluBackwardCpu(const OpCall& call, const CpuRun& run, KernelState* /*state*/) {
  const SwiGluBackwardOperands on = call.operands(kSwiGluBackward);
  const Tensor& dy = on.reads.dy;
  const Tensor& gate_up = on.reads.gate_up;
  const Tensor& out = on.writes.d_gate_up;
  const bool stream = gate_up.storage != out.storage && Streams(run, out) && dy.cols * SizeOf(dy.dtype) % 64 == 0;
  WithType(dy.dtype, [&](auto t) {
    using T = decltype(t);
    const T* upper = run.Data<T>(dy);
    const T* from = run.Data<T>(gate_up);
    T* to = run.Data<T>(out);
    ParallelRows(dy.rows, 5 * dy.cols, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        SwiGluBackwardRow(upper + row * dy.cols, from + row * 2 * dy.cols, to + row * 2 * dy.cols, dy.cols, stream);
      }
      if (stream) hwy::FlushStream();
    });
  });
}

// part (PaddedCols, in the order of Pairs) = the sums of the columns of `rows` rows.
template <bool kSplit, typename T>
HWY_NOINLINE void SumRows(const T* x, int64_t row_stride, int64_t rows, int64_t cols, float* part) {
  for (int64_t row = 0; row < rows; row += 4) {
    const T* x0 = x + row * row_stride;
    const int64_t left = std::min<int64_t>(4, rows - row);
    ForBlocks(cols, [&](int64_t i, auto count) HWY_ATTR {
      Pair sum = row == 0 ? SplatPair(0) : Load<false>(part + i, Full());
      for (int64_t r = 0; r < left; ++r) {
        FetchAhead(x0 + (r + 4) * row_stride + i, 0);
        sum = Plus(sum, Load<kSplit>(x0 + r * row_stride + i, count));
      }
      Store<false>(sum, part + i, Full());
    });
  }
}
void ColumnSumCpu(const OpCall& call, const CpuRun& run, KernelState* /*state*/) {
  const ColumnSumOperands on = call.operands(kColumnSum);
  const Tensor& x = on.reads.x;
  const Tensor& sum = on.writes.sum;
  const Tensor& parts = on.scratch.parts;
  const bool accumulate = call.attrs(kColumnSum).accumulate;
  auto* part = run.Data<float>(parts);
  WithType(x.dtype, [&](auto t) {
    using T = decltype(t);
    WithType(sum.dtype, [&](auto u) {
      using S = decltype(u);
      const T* data = run.Data<T>(x);
      ParallelFor(parts.rows, 1, [&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; ++p) {
          const int64_t first = x.rows * p / parts.rows;
          const int64_t last = x.rows * (p + 1) / parts.rows;
          SumRows<kAnySplit<T, S>>(data + first * x.row_stride, x.row_stride, last - first, x.cols,
                                   part + p * parts.cols);
        }
      });
      AddUpParts<kAnySplit<T, S>>(part, parts.rows, parts.cols, run.Data<S>(sum), sum.cols, accumulate);
    });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace ridgeline::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridgeline::engine {
HWY_EXPORT(RopeCpu);
HWY_EXPORT(SwiGluCpu);
HWY_EXPORT(SwiGluBackwardCpu);
HWY_EXPORT(GeluCpu);
HWY_EXPORT(GeluBackwardCpu);
HWY_EXPORT(DropoutAddCpu);
HWY_EXPORT(DropoutBackwardCpu);
HWY_EXPORT(FillCpu);
HWY_EXPORT(FillUniformCpu);
HWY_EXPORT(ColumnSumCpu);

void AddElementwiseCpu(CpuKernelTable& table) {
  ChooseTarget();
  table[&kRope].run = HWY_DYNAMIC_DISPATCH(RopeCpu);
  table[&kSwiGlu].run = HWY_DYNAMIC_DISPATCH(SwiGluCpu);
  table[&kSwiGluBackward].run = HWY_DYNAMIC_DISPATCH(SwiGluBackwardCpu);
  table[&kGelu].run = HWY_DYNAMIC_DISPATCH(GeluCpu);
  table[&kGeluBackward].run = HWY_DYNAMIC_DISPATCH(GeluBackwardCpu);
  table[&kDropoutAdd].run = HWY_DYNAMIC_DISPATCH(DropoutAddCpu);
  table[&kDropoutBackward].run = HWY_DYNAMIC_DISPATCH(DropoutBackwardCpu);
  table[&kFill].run = HWY_DYNAMIC_DISPATCH(FillCpu);
  table[&kFillUniform].run = HWY_DYNAMIC_DISPATCH(FillUniformCpu);
  table[&kColumnSum].run = HWY_DYNAMIC_DISPATCH(ColumnSumCpu);
}

}  // namespace ridgeline::engine
#endif
