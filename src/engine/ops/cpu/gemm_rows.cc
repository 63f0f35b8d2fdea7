#include "engine/ops/cpu/gemm_rows.h"

#include <cstring>

#include "engine/precision/tf32.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/ops/cpu/gemm_rows.cc"
#include "engine/ops/cpu/simd_targets.h"  // before Highway

#include <hwy/foreach_target.h>

#include "engine/ops/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ridgeline::engine {
namespace HWY_NAMESPACE {
namespace {

template <typename T>
void Widen(const T* in, float* out, int64_t n) {
  ForBlocks(n, [&](int64_t i, auto count) { Store<true>(Load<true>(in + i, count), out + i, count); });
}
void WidenBf16Row(const uint16_t* in, float* out, int64_t n) { Widen(in, out, n); }
void WidenFp16Row(const F16* in, float* out, int64_t n) { Widen(in, out, n); }

template <typename T>
void Finish(const float* in, float scale, const float* bias, T* c, bool accumulate, int64_t n) {
  constexpr bool kSplit = sizeof(T) == 2;
  ForBlocks(n, [&](int64_t i, auto count) {
    Pair value = Times(Load<kSplit>(in + i, count), SplatPair(scale));
    if (bias != nullptr) value = Plus(value, Load<kSplit>(bias + i, count));
    if (accumulate) value = Plus(value, Load<kSplit>(c + i, count));
    Store<kSplit>(value, c + i, count);
  });
}

void FinishF32Row(const float* in, float scale, const float* bias, float* c, bool accumulate, int64_t n) {
  Finish(in, scale, bias, c, accumulate, n);
}
void FinishBf16Row(const float* in, float scale, const float* bias, uint16_t* c, bool accumulate, int64_t n) {
  Finish(in, scale, bias, c, accumulate, n);
}
void FinishFp16Row(const float* in, float scale, const float* bias, F16* c, bool accumulate, int64_t n) {
  Finish(in, scale, bias, c, accumulate, n);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ridgeline::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridgeline::engine {

HWY_EXPORT(WidenBf16Row);
HWY_EXPORT(WidenFp16Row);
HWY_EXPORT(FinishF32Row);
HWY_EXPORT(FinishBf16Row);
HWY_EXPORT(FinishFp16Row);

void WidenRow(const void* in, DType dtype, float* out, int64_t n) {
  if (dtype == DType::kF32) {
    std::memcpy(out, in, static_cast<size_t>(n) * sizeof(float));
  } else if (dtype == DType::kBF16) {
    HWY_DYNAMIC_DISPATCH(WidenBf16Row)(static_cast<const uint16_t*>(in), out, n);
  } else {
    HWY_DYNAMIC_DISPATCH(WidenFp16Row)(static_cast<const hwy::float16_t*>(in), out, n);
  }
}

void RoundRowToTf32(const void* in, DType /*dtype*/, float* out, int64_t n) {
  const auto* numbers = static_cast<const float*>(in);
  for (int64_t i = 0; i < n; ++i) out[i] = RoundToTf32(numbers[i]);
}

void FinishRow(const float* in, float scale, const float* bias, void* c, DType dtype, bool accumulate, int64_t n) {
  if (dtype == DType::kF32) {
    HWY_DYNAMIC_DISPATCH(FinishF32Row)(in, scale, bias, static_cast<float*>(c), accumulate, n);
  } else if (dtype == DType::kBF16) {
    HWY_DYNAMIC_DISPATCH(FinishBf16Row)(in, scale, bias, static_cast<uint16_t*>(c), accumulate, n);
  } else {
    HWY_DYNAMIC_DISPATCH(FinishFp16Row)(in, scale, bias, static_cast<hwy::float16_t*>(c), accumulate, n);
  }
}

}  // namespace ridgeline::engine
#endif
