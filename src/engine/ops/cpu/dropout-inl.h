// Sums and dropout of a block of elements. Included once for each target, inside of Highway's foreach_target.h.

#include "engine/ops/cpu/simd_targets.h"

#if defined(RIDGELINE_OPS_DROPOUT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RIDGELINE_OPS_DROPOUT_INL_H_
#undef RIDGELINE_OPS_DROPOUT_INL_H_
#else
#define RIDGELINE_OPS_DROPOUT_INL_H_
#endif

#include "engine/ops/cpu/philox-inl.h"
#include "engine/ops/cpu/simd-inl.h"
#include "engine/ops/elementwise.h"

HWY_BEFORE_NAMESPACE();
namespace ridgeline::engine {
namespace HWY_NAMESPACE {

struct AddOp {
  HWY_INLINE Pair operator()(int64_t /*i*/, Pair a, Pair b) const { return Plus(a, b); }
};

template <bool kSplit>
struct DropoutOp {
  RandomBlocks random;
  uint32_t threshold;
  float scale;

  HWY_INLINE Pair operator()(int64_t i, Pair x) const {
    const auto bits = random.Block<kSplit>(i);
    return {Keep(bits.a, x.a), Keep(bits.b, x.b)};
  }
  HWY_INLINE Pair operator()(int64_t i, Pair x, Pair residual) const { return Plus((*this)(i, x), residual); }
  HWY_INLINE VF Keep(VU bits, VF x) const {
    const auto drop = hn::RebindMask(DF(), hn::Lt(bits, hn::Set(DU(), threshold)));
    return hn::IfThenZeroElse(drop, hn::Mul(x, Splat(scale)));
  }
};

// `first`: the position of the first element in its tensor.
template <typename T>
DropoutOp<kAnySplit<T>> MakeDropout(const StepInputs& inputs, const DropoutAttrs& attrs, int64_t first = 0) {
  return {
      {inputs, attrs.stream, attrs.first + first}, DropoutThreshold(attrs.p), static_cast<float>(1 / (1 - attrs.p))};
}

}  // namespace HWY_NAMESPACE
}  // namespace ridgeline::engine
HWY_AFTER_NAMESPACE();
#endif
