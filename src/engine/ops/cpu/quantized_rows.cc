#include "engine/ops/cpu/quantized_rows.h"

#include <cstring>

#include "engine/ops/cpu/simd_targets.h"
#include "engine/ops/quantize.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/ops/cpu/quantized_rows.cc"
#include <hwy/foreach_target.h>
// clang-format off: after foreach_target.h
#include "engine/ops/cpu/codes-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace ridgeline::engine {
namespace HWY_NAMESPACE {

constexpr int64_t kChunk = 512;  // elements whose scales are decoded at a time

// Decodes `count` bytes of E8M0 or E4M3. `values` has space for whole vectors.
HWY_INLINE void DecodeScales(const uint8_t* scales, int64_t count, bool e8m0, float* values) {
  alignas(64) uint8_t bytes[kChunk / 16];
  std::memcpy(bytes, scales, static_cast<size_t>(count));
  for (int64_t i = 0; i < count; i += kLanes) {
    const auto code = hn::PromoteTo(DU(), hn::Load(DB(), bytes + i));
    hn::Store(e8m0 ? DecodeE8M0Lanes(code) : DecodeLanes<Format::kE4M3>(code), DF(), values + i);
  }
}

// out = (code * block scale) * factor for elements [begin, begin + n) of a row.
template <Format kFormat, int64_t kSize, typename T>
HWY_NOINLINE void DequantizeRow(const uint8_t* codes, const uint8_t* scales, int64_t begin, int64_t n, float factor,
                                T* out) {
  constexpr int64_t kPerByte = kFormat == Format::kE2M1 ? 2 : 1;
  alignas(64) float values[kChunk / 16];
  for (int64_t chunk = 0; chunk < n; chunk += kChunk) {
    const int64_t count = std::min(kChunk, n - chunk);
    if (kSize > 1) DecodeScales(scales + (begin + chunk) / kSize, (count + kSize - 1) / kSize, kSize == 32, values);
    const uint8_t* from = codes + (begin + chunk) / kPerByte;
    const auto block = [&](int64_t i, const uint8_t* bytes) HWY_ATTR -> Pair {
      const CodePair code = LoadCodes<kFormat>(bytes);
      Pair value = {DecodeLanes<kFormat>(code.a), DecodeLanes<kFormat>(code.b)};
      if constexpr (kSize > 1) {
        const VF scale = ScaleOf<kSize>(values, i);
        value = Times(value, {scale, scale});
      }
      return Times(value, SplatPair(factor));
    };
    int64_t i = 0;
    for (; i + kBlock <= count; i += kBlock) Store<true>(block(i, from + i / kPerByte), out + chunk + i, Full());
    if (i < count) {
      uint8_t bytes[kBlock] = {};
      std::memcpy(bytes, from + i / kPerByte, static_cast<size_t>((count - i + kPerByte - 1) / kPerByte));
      Store<true>(block(i, bytes), out + chunk + i, Part{count - i});
    }
  }
}

template <typename T>
void DequantizeRows(const QuantizedData& q, int64_t outer_begin, int64_t outer_count, int64_t inner_begin,
                    int64_t inner_count, float factor, T* out, int64_t out_stride) {
  auto* row = DequantizeRow<Format::kE2M1, 16, T>;
  if (q.quantizer.scaling == Scaling::kBlock32) {
    row = DequantizeRow<Format::kE4M3, 32, T>;
  } else if (q.quantizer.format == Format::kE4M3) {
    row = DequantizeRow<Format::kE4M3, 1, T>;
  } else if (q.quantizer.format == Format::kE5M2) {
    row = DequantizeRow<Format::kE5M2, 1, T>;
  }
  for (int64_t r = 0; r < outer_count; ++r) {
    const int64_t outer = outer_begin + r;
    const uint8_t* scales = q.scales == nullptr ? nullptr : q.scales + outer * q.scale_stride;
    row(q.codes + outer * q.code_stride, scales, inner_begin, inner_count, factor, out + r * out_stride);
  }
}

void DequantizeToF32(const QuantizedData& q, int64_t outer_begin, int64_t outer_count, int64_t inner_begin,
                     int64_t inner_count, float factor, float* out, int64_t out_stride) {
  DequantizeRows(q, outer_begin, outer_count, inner_begin, inner_count, factor, out, out_stride);
}
void DequantizeToBf16(const QuantizedData& q, int64_t outer_begin, int64_t outer_count, int64_t inner_begin,
                      int64_t inner_count, float factor, uint16_t* out, int64_t out_stride) {
  DequantizeRows(q, outer_begin, outer_count, inner_begin, inner_count, factor, out, out_stride);
}

void DequantizeCpu(const OpCall& call, const CpuRun& run, KernelState* /*state*/) {
  const DequantizeOperands on = call.operands(kDequantize);
  const Tensor& tensor_scale = on.reads.q.tensor_scale;
  const Tensor& y = on.writes.y;
  const QuantizedData q = DataOf(run, call.attrs(kDequantize), on.reads.q);
  const float factor = tensor_scale.defined() ? *run.Data<float>(tensor_scale) : 1.0F;
  WithF32OrBf16(y.dtype, [&](auto t) {
    using T = decltype(t);
    T* out = run.Data<T>(y);
    ParallelRows(y.rows, y.cols, [&](int64_t begin, int64_t end) {
      DequantizeRows(q, begin, end - begin, 0, y.cols, factor, out + begin * y.row_stride, y.row_stride);
    });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace ridgeline::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridgeline::engine {

QuantizedData DataOf(const CpuRun& run, const Quantizer& quantizer, const StoredCodes& q) {
  QuantizedData data = {quantizer, run.Data<uint8_t>(q.codes), nullptr, q.codes.row_stride, 0};
  if (q.scales.defined()) {
    data.scales = run.Data<uint8_t>(q.scales);
    data.scale_stride = q.scales.row_stride;
  }
  return data;
}

HWY_EXPORT(DequantizeToF32);
HWY_EXPORT(DequantizeToBf16);
HWY_EXPORT(DequantizeCpu);

void DequantizePart(const QuantizedData& q, int64_t outer_begin, int64_t outer_count, int64_t inner_begin,
                    int64_t inner_count, float* out, int64_t out_stride) {
  HWY_DYNAMIC_DISPATCH(DequantizeToF32)(q, outer_begin, outer_count, inner_begin, inner_count, 1, out, out_stride);
}
void DequantizePart(const QuantizedData& q, int64_t outer_begin, int64_t outer_count, int64_t inner_begin,
                    int64_t inner_count, uint16_t* out, int64_t out_stride) {
  HWY_DYNAMIC_DISPATCH(DequantizeToBf16)(q, outer_begin, outer_count, inner_begin, inner_count, 1, out, out_stride);
}

void AddDequantizeCpu(CpuKernelTable& table) {
  ChooseTarget();
  table[&kDequantize].run = HWY_DYNAMIC_DISPATCH(DequantizeCpu);
}

}  // namespace ridgeline::engine
#endif
