// The quantizers, one element at a time. Kernels must match them bit by bit: all of it is fp32, every operation is
// rounded once, in the order given here. Slow.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/precision/quantizer.h"

namespace ridgeline::engine {

struct ReferenceTensor {
  Quantizer quantizer;
  int64_t outer = 0;
  int64_t inner = 0;
  std::vector<uint8_t> codes;   // as QuantizedTensor's
  std::vector<uint8_t> scales;  // as QuantizedTensor's
  float tensor_scale = 1;
  float amax = 0;  // of the elements, after the transform if there is one; NaN if one of them is NaN
};

// One scale:  x_q = x * scale, tensor scale = 1 / scale. scale = max(format) / amax, at most FLT_MAX, and 1 if amax
//             is 0, infinite or NaN (kCurrent). kDelayed: `delayed_scale`.
// kBlock32:   scale = E8M0(amax / 448), or with kFloor 2^(floor(log2 amax) - 8); x_q = x * 2^(127 - scale).
// kBlock16*:  S = 448 * 6 / amax of the tensor, at most FLT_MAX, and 1 if that amax is 0, infinite or NaN; tensor
//             scale = 1 / S. Block scale s = E4M3(amax of the block * S / 6). x_q = x / (s * tensor scale), and 0 in
//             blocks whose s is 0.
// The codes are x_q, encoded. A NaN makes its block's scale NaN.
// x is (outer, inner), dense. `draw` returns the draw_bits() random bits of element outer_index * DrawCols(inner) +
// inner_index.
ReferenceTensor QuantizeReference(const Quantizer& quantizer, std::span<const float> x, int64_t outer, int64_t inner,
                                  float delayed_scale = 1,
                                  const std::function<uint32_t(int64_t element)>& draw = nullptr);

// (outer, padded inner): (code * block scale) * tensor scale.
std::vector<float> DequantizeReference(const ReferenceTensor& q);

// The transform of quantizer.h as butterflies: each element is multiplied by its sign / 4. Then for h = 1, 2, 4, 8
// elements i and i + h (i without bit h) become their sum and their difference.
std::array<float, kHadamardSize> HadamardReference(const std::array<float, kHadamardSize>& x);

}  // namespace ridgeline::engine
