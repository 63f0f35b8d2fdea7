// Converts quantized matrices back to numbers, a part at a time, vectorised, for the emulated products.
#pragma once

#include <cstdint>

#include "engine/device/cpu/kernel.h"
#include "engine/precision/quantizer.h"

namespace ridgeline::engine {

// The memory of a quantized matrix.
struct QuantizedData {
  Quantizer quantizer;
  const uint8_t* codes = nullptr;
  const uint8_t* scales = nullptr;  // nullptr without blocks
  int64_t code_stride = 0;          // bytes
  int64_t scale_stride = 0;         // bytes
};
QuantizedData DataOf(const CpuRun& run, const Quantizer& quantizer, const StoredCodes& q);

// out (outer_count, inner_count), rows `out_stride` elements apart, = code * block scale, without the tensor scale, for
// a part of q that may reach into the padding. REQUIRES: inner_begin is a multiple of 32. Exact in fp32, and in bf16
// (out as uint16_t), except that subnormal bf16 results are rounded.
void DequantizePart(const QuantizedData& q, int64_t outer_begin, int64_t outer_count, int64_t inner_begin,
                    int64_t inner_count, float* out, int64_t out_stride);
void DequantizePart(const QuantizedData& q, int64_t outer_begin, int64_t outer_count, int64_t inner_begin,
                    int64_t inner_count, uint16_t* out, int64_t out_stride);

// The kernels of kDequantize and kTransposeQuantized. AddQuantizeCpu calls these.
void AddDequantizeCpu(CpuKernelTable& table);
void AddTransposeQuantizedCpu(CpuKernelTable& table);

}  // namespace ridgeline::engine
