#include "engine/ops/optimizer.h"
#include "engine/ops/cpu/kernels.h"

#include <algorithm>
#include <cmath>

#include "engine/ops/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/ops/cpu/optimizer.cc"
#include <hwy/foreach_target.h>
// clang-format off: after foreach_target.h
#include "engine/ops/cpu/simd-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace ridgeline::engine {
namespace HWY_NAMESPACE {

// The constants of one step, computed in double as PyTorch does.
struct AdamStep {
  AdamStep(const AdamAttrs& attrs, const StepInputs& inputs, float scale, float skipped) : gradient_scale(scale) {
    const double step = static_cast<double>(inputs.step) - skipped;
    keep = static_cast<float>(attrs.decoupled ? 1 - inputs.learning_rate * attrs.weight_decay : 1);
    decay = static_cast<float>(attrs.decoupled ? 0 : attrs.weight_decay);
    one_minus_beta1 = static_cast<float>(1 - attrs.beta1);
    beta2 = static_cast<float>(attrs.beta2);
    one_minus_beta2 = static_cast<float>(1 - attrs.beta2);
    minus_step_size = static_cast<float>(-inputs.learning_rate / (1 - std::pow(attrs.beta1, step)));
    root_correction = static_cast<float>(1 / std::sqrt(1 - std::pow(attrs.beta2, step)));
    epsilon = static_cast<float>(attrs.epsilon);
  }

  float gradient_scale;
  float keep;
  float decay;
  float one_minus_beta1;
  float beta2;
  float one_minus_beta2;
  float minus_step_size;
  float root_correction;  // 1 / sqrt(1 - beta2^t)
  float epsilon;
};

struct AdamLane {
  VF weight, m, v;
};
HWY_INLINE AdamLane AdamOf(const AdamStep& step, AdamLane old, VF g) {
  g = hn::Mul(g, Splat(step.gradient_scale));
  g = hn::MulAdd(old.weight, Splat(step.decay), g);
  const VF weight = hn::Mul(old.weight, Splat(step.keep));
  const VF m = hn::MulAdd(Splat(step.one_minus_beta1), hn::Sub(g, old.m), old.m);
  const VF v = hn::MulAdd(hn::Mul(Splat(step.one_minus_beta2), g), g, hn::Mul(old.v, Splat(step.beta2)));
  const VF denominator = hn::MulAdd(hn::Sqrt(v), Splat(step.root_correction), Splat(step.epsilon));
  return {hn::Add(weight, hn::Div(hn::Mul(Splat(step.minus_step_size), m), denominator)), m, v};
}

// Weights in fp32, or in bf16.
template <typename W>
struct PlainWeights {
  W* work;
  static constexpr bool kSplit = kAnySplit<W>;

  HWY_INLINE void Fetch(int64_t i) const { FetchAhead(work + i); }
  template <bool kSplit, typename Count>
  HWY_INLINE Pair Read(int64_t i, Count count) const {
    return Load<kSplit>(work + i, count);
  }
  template <bool kSplit, typename Count>
  HWY_INLINE void Write(Pair value, int64_t i, Count count) const {
    Store<kSplit>(value, work + i, count);
  }
};

// fp32 in two parts, as SplitMaster makes them.
struct MasterWeights {
  uint16_t* work;
  uint16_t* low;  // int16_t's bits
  static constexpr bool kSplit = true;

  HWY_INLINE void Fetch(int64_t i) const {
    FetchAhead(work + i);
    FetchAhead(low + i);
  }
  template <bool>
  HWY_INLINE Pair Read(int64_t i, Full /*count*/) const {
    return ReadFrom(work + i, low + i);
  }
  template <bool>
  HWY_INLINE Pair Read(int64_t i, Part count) const {
    alignas(64) uint16_t work_block[kBlock] = {};
    alignas(64) uint16_t low_block[kBlock] = {};
    std::memcpy(work_block, work + i, static_cast<size_t>(count.size) * 2);
    std::memcpy(low_block, low + i, static_cast<size_t>(count.size) * 2);
    return ReadFrom(work_block, low_block);
  }
  template <bool>
  HWY_INLINE void Write(Pair value, int64_t i, Full /*count*/) const {
    WriteTo(value, work + i, low + i);
  }
  template <bool>
  HWY_INLINE void Write(Pair value, int64_t i, Part count) const {
    alignas(64) uint16_t work_block[kBlock];
    alignas(64) uint16_t low_block[kBlock];
    WriteTo(value, work_block, low_block);
    std::memcpy(work + i, work_block, static_cast<size_t>(count.size) * 2);
    std::memcpy(low + i, low_block, static_cast<size_t>(count.size) * 2);
  }

 private:
  static HWY_INLINE Pair ReadFrom(const uint16_t* work, const uint16_t* low) {
    const auto high = hn::BitCast(DU(), hn::LoadU(DH(), work));
    const auto rest = hn::BitCast(DI(), hn::LoadU(DH(), low));
    const auto rest_a = hn::BitCast(DU(), hn::ShiftRight<16>(hn::ShiftLeft<16>(rest)));
    const auto rest_b = hn::BitCast(DU(), hn::ShiftRight<16>(rest));
    return {hn::BitCast(DF(), hn::Add(hn::ShiftLeft<16>(high), rest_a)),
            hn::BitCast(DF(), hn::Add(hn::And(high, hn::Set(DU(), 0xffff0000U)), rest_b))};
  }
  static HWY_INLINE void WriteTo(Pair value, uint16_t* work, uint16_t* low) {
    const VU a = hn::BitCast(DU(), value.a);
    const VU b = hn::BitCast(DU(), value.b);
    const VU half = hn::Set(DU(), 0x8000);
    const auto nan_a = hn::RebindMask(DU(), hn::IsNaN(value.a));
    const auto nan_b = hn::RebindMask(DU(), hn::IsNaN(value.b));
    const VU quiet = hn::Set(DU(), 0x400000);
    const VU high_a = hn::IfThenElse(nan_a, hn::Or(a, quiet), hn::Add(a, half));
    const VU high_b = hn::IfThenElse(nan_b, hn::Or(b, quiet), hn::Add(b, half));
    const auto even = hn::BitCast(DH(), hn::ShiftRight<16>(high_a));
    hn::StoreU(hn::OddEven(hn::BitCast(DH(), high_b), even), DH(), work);
    // master - work leaves the low 16 bits of master.
    const VU low_a = hn::IfThenZeroElse(nan_a, a);
    const VU low_b = hn::IfThenZeroElse(nan_b, hn::ShiftLeft<16>(b));
    hn::StoreU(hn::OddEven(hn::BitCast(DH(), low_b), hn::BitCast(DH(), low_a)), DH(), low);
  }
};

// Returns, as fp32, the bf16 number that SplitMaster gives; NaN stays NaN.
HWY_INLINE VF NearestBf16(VF master) {
  const VU bits = hn::Add(hn::BitCast(DU(), master), hn::Set(DU(), 0x8000));
  const VF nearest = hn::BitCast(DF(), hn::And(bits, hn::Set(DU(), 0xffff0000U)));
  return hn::IfThenElse(hn::IsNaN(master), master, nearest);
}

// fp32, rounded to the multiplied dtype.
template <typename W>
struct RoundedWeights {
  float* master;
  W* work;
  static constexpr bool kSplit = kAnySplit<W>;

  HWY_INLINE void Fetch(int64_t i) const {
    FetchAhead(master + i);
    FetchAhead(work + i);
  }
  template <bool kSplit, typename Count>
  HWY_INLINE Pair Read(int64_t i, Count count) const {
    return Load<kSplit>(master + i, count);
  }
  template <bool kSplit, typename Count>
  HWY_INLINE void Write(Pair value, int64_t i, Count count) const {
    Store<kSplit>(value, master + i, count);
    if constexpr (std::is_same_v<W, uint16_t>) value = {NearestBf16(value.a), NearestBf16(value.b)};
    Store<kSplit>(value, work + i, count);
  }
};

template <typename Weights, typename M, typename G>
HWY_NOINLINE void AdamRange(const AdamStep& step, const Weights& weights, M* m, M* v, const G* grad, int64_t begin,
                            int64_t end) {
  constexpr bool kSplit = Weights::kSplit || kAnySplit<M, G>;
  ForBlocks(end - begin, [&](int64_t at, auto count) HWY_ATTR {
    const int64_t i = begin + at;
    weights.Fetch(i);
    FetchAhead(m + i);
    FetchAhead(v + i);
    FetchAhead(grad + i);
    const Pair weight = weights.template Read<kSplit>(i, count);
    const Pair old_m = Load<kSplit>(m + i, count);
    const Pair old_v = Load<kSplit>(v + i, count);
    const Pair g = Load<kSplit>(grad + i, count);
    const AdamLane a = AdamOf(step, {weight.a, old_m.a, old_v.a}, g.a);
    const AdamLane b = AdamOf(step, {weight.b, old_m.b, old_v.b}, g.b);
    weights.template Write<kSplit>({a.weight, b.weight}, i, count);
    Store<kSplit>({a.m, b.m}, m + i, count);
    Store<kSplit>({a.v, b.v}, v + i, count);
  });
}

void AdamCpu(const OpCall& call, const CpuRun& run, KernelState* /*state*/) {
  const AdamOperands on = call.operands(kAdam);
  const Tensor& work = on.writes.work;
  const Tensor& master = on.writes.master;
  const Tensor& m = on.writes.m;
  const Tensor& grad = on.reads.grad;
  const Tensor& scale = on.reads.scale;
  const Tensor& loss_scale = on.reads.loss_scale;
  const AdamStep step(call.attrs(kAdam), run.Inputs(on.reads.inputs), scale.defined() ? *run.Data<float>(scale) : 1.0F,
                      loss_scale.defined() ? run.Data<float>(loss_scale)[2] : 0.0F);
  if (step.gradient_scale < 0) return;
  const auto update = [&](const auto& weights) {
    WithF32OrBf16(m.dtype, [&](auto t) {
      WithF32OrBf16(grad.dtype, [&](auto u) {
        using M = decltype(t);
        using G = decltype(u);
        M* first = run.Data<M>(m);
        M* second = run.Data<M>(on.writes.v);
        const G* gradient = run.Data<G>(grad);
        ParallelElements(work.elements(), [&](int64_t begin, int64_t end) {
          AdamRange(step, weights, first, second, gradient, begin, end);
        });
      });
    });
  };
  if (master.defined() && master.dtype == DType::kI16) {
    update(MasterWeights{run.Data<uint16_t>(work), run.Data<uint16_t>(master)});
  } else if (master.defined() && work.dtype == DType::kBF16) {
    update(RoundedWeights<uint16_t>{run.Data<float>(master), run.Data<uint16_t>(work)});
  } else if (master.defined()) {
    update(RoundedWeights<F16>{run.Data<float>(master), run.Data<F16>(work)});
  } else {
    WithType(work.dtype, [&](auto t) {
      using W = decltype(t);
      update(PlainWeights<W>{run.Data<W>(work)});
    });
  }
}

void SquaredSumCpu(const OpCall& call, const CpuRun& run, KernelState* /*state*/) {
  const SquaredSumOperands on = call.operands(kSquaredSum);
  auto* sum = run.Data<float>(on.writes.sum);
  *sum = static_cast<float>(static_cast<double>(*sum) + SumElements<true>(run, on.reads.x, on.scratch.parts));
}

void ClipScaleCpu(const OpCall& call, const CpuRun& run, KernelState* /*state*/) {
  const ClipScaleOperands on = call.operands(kClipScale);
  const float norm = std::sqrt(*run.Data<float>(on.reads.sum));
  const auto scale = static_cast<float>(call.attrs(kClipScale).clip) / (norm + 1e-6F);
  *run.Data<float>(on.writes.norm) = norm;
  *run.Data<float>(on.writes.scale) = scale > 1 ? 1 : scale;  // NaN stays
}

void LossScaleCpu(const OpCall& call, const CpuRun& run, KernelState* /*state*/) {
  const LossScaleOperands on = call.operands(kLossScale);
  auto* state = run.Data<float>(on.writes.state);
  auto* scale = run.Data<float>(on.writes.scale);
  const float factor = state[0];
  const float norm = std::sqrt(*run.Data<float>(on.reads.sum)) / factor;
  *run.Data<float>(on.writes.norm) = norm;
  if (!std::isfinite(norm)) {
    *scale = -1;
    state[0] = factor / 2;
    state[1] = 0;
    state[2] += 1;
    return;
  }
  const auto clip = static_cast<float>(call.attrs(kLossScale).clip);
  *scale = (clip > 0 ? std::min(1.0F, clip / (norm + 1e-6F)) : 1.0F) / factor;
  state[1] += 1;
  if (state[1] == kLossScaleWindow) {
    state[0] = factor * 2;
    state[1] = 0;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace ridgeline::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridgeline::engine {
HWY_EXPORT(AdamCpu);
HWY_EXPORT(SquaredSumCpu);
HWY_EXPORT(ClipScaleCpu);
HWY_EXPORT(LossScaleCpu);

void AddOptimizerCpu(CpuKernelTable& table) {
  ChooseTarget();
  table[&kAdam].run = HWY_DYNAMIC_DISPATCH(AdamCpu);
  table[&kSquaredSum].run = HWY_DYNAMIC_DISPATCH(SquaredSumCpu);
  table[&kClipScale].run = HWY_DYNAMIC_DISPATCH(ClipScaleCpu);
  table[&kLossScale].run = HWY_DYNAMIC_DISPATCH(LossScaleCpu);
}

}  // namespace ridgeline::engine
#endif
