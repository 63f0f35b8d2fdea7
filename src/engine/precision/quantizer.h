// How a matrix is converted to a format of 8 or 4 bits, and how the result is stored. reference.h defines every bit of
// it.
#pragma once

#include <cstdint>
#include <limits>

#include "engine/precision/formats.h"
#include "engine/tensor/tensor.h"

namespace ridgeline::engine {

enum class Scaling : uint8_t {
  kDelayed,     // fp8: one fp32 scale, from the amaxes of earlier steps
  kCurrent,     // fp8: one fp32 scale, from this tensor's amax
  kBlock32,     // mxfp8: an E8M0 scale for each 32 elements along the inner dimension
  kBlock16,     // nvfp4: an E4M3 scale for each 16, and one fp32 scale
  kBlock16x16,  // nvfp4's weights: an E4M3 scale for each 16 by 16, and one fp32 scale
};
enum class Rounding : uint8_t { kNearest, kStochastic };

// Returns how many elements along the inner dimension share a block scale; 1 without blocks.
constexpr int64_t BlockOf(Scaling scaling) {
  switch (scaling) {
    case Scaling::kDelayed:
    case Scaling::kCurrent:
      return 1;
    case Scaling::kBlock32:
      return 32;
    case Scaling::kBlock16:
    case Scaling::kBlock16x16:
      return 16;
  }
  return 1;
}
constexpr bool HasBlocks(Scaling scaling) { return BlockOf(scaling) > 1; }

struct Quantizer {
  Format format = Format::kE4M3;
  Scaling scaling = Scaling::kCurrent;
  Rounding rounding = Rounding::kNearest;
  bool hadamard = false;                       // each 16 along the inner dimension are transformed first
  ScaleRule scale_rule = ScaleRule::kRoundUp;  // of kBlock32

  bool operator==(const Quantizer&) const = default;

  // Whether the combination is supported: E4M3 and E5M2 with one scale, E4M3 in blocks of 32, E2M1 in blocks of 16;
  // stochastic rounding to E4M3 and E2M1; the transform in blocks of 16 by 1 only.
  constexpr bool valid() const {
    const bool nvfp4 = scaling == Scaling::kBlock16;
    if (hadamard && !nvfp4) return false;
    if (rounding == Rounding::kStochastic && format == Format::kE5M2) return false;
    switch (format) {
      case Format::kE4M3:
        return scaling == Scaling::kDelayed || scaling == Scaling::kCurrent || scaling == Scaling::kBlock32;
      case Format::kE5M2:
        return scaling == Scaling::kDelayed || scaling == Scaling::kCurrent;
      case Format::kE2M1:
        return nvfp4 || scaling == Scaling::kBlock16x16;
    }
    return false;
  }
  // Returns the inner dimension with its last block filled up.
  constexpr int64_t PaddedInner(int64_t inner) const {
    const int64_t block = BlockOf(scaling);
    return (inner + block - 1) / block * block;
  }
  // Bytes in a row of codes, and scales in a row.
  constexpr int64_t CodeCols(int64_t inner) const { return PaddedInner(inner) / (format == Format::kE2M1 ? 2 : 1); }
  constexpr int64_t ScaleCols(int64_t inner) const {
    return HasBlocks(scaling) ? PaddedInner(inner) / BlockOf(scaling) : 0;
  }
  // Returns how many random numbers a stochastically rounded row takes: whole groups of 16, whatever the blocks.
  constexpr int64_t DrawCols(int64_t inner) const { return (PaddedInner(inner) + 15) / 16 * 16; }
  // Returns how many random bits round an element. Blocks of gradients, which are made again in every step, take the
  // bits that fp16 has below E2M1's one bit of mantissa. Weights kept as codes move by small parts of a step, and take
  // more.
  constexpr int draw_bits() const { return scaling == Scaling::kBlock16 ? 9 : 16; }
  constexpr bool has_tensor_scale() const { return scaling != Scaling::kBlock32; }
};

// The tensors of a quantized matrix.
struct StoredCodes {
  Tensor codes, scales, tensor_scale;
};

// A matrix (outer, inner). Products sum over the inner dimension: both operands of a product are quantized with that
// dimension inside, whichever way they lay before.
// value = code [* block scale] [* tensor scale].
// The inner dimension is padded with the codes of zeros. With the Hadamard transform, the last group is filled up with
// zeros and transformed as a whole, so products over the padded dimension equal those over the inner one.
struct QuantizedTensor {
  Quantizer quantizer;
  int64_t outer = 0;
  int64_t inner = 0;  // before padding
  Tensor codes;       // (outer, padded inner) uint8; E2M1: (outer, padded inner / 2), the even element in the low bits
  Tensor scales;      // (outer, padded inner / block) uint8: E8M0 (kBlock32) or E4M3, a 16x16 block's once for each of
                      // its rows; undefined without blocks
  Tensor tensor_scale;  // (1, 1) fp32; undefined for kBlock32

  StoredCodes stored() const { return {codes, scales, tensor_scale}; }
};

inline constexpr float kLargestFloat = std::numeric_limits<float>::max();
// Returns the factor from `amax` to `largest`, at most FLT_MAX; `otherwise` if amax is 0, infinite or NaN.
RIDGELINE_HOST_DEVICE inline float TensorScale(float largest, float amax, float otherwise) {
  if (!(amax > 0 && amax <= kLargestFloat)) return otherwise;
  const float scale = largest / amax;
  return scale < kLargestFloat ? scale : kLargestFloat;
}
// For kBlock16 and kBlock16x16: the largest block scale in E4M3 times the largest code.
inline constexpr float kNvfp4Max = InfoOf(Format::kE4M3).max * InfoOf(Format::kE2M1).max;

// nvfp4's random Hadamard transform of a group of 16: x · diag(signs) · H / 4, with Sylvester's H. The signs were drawn
// once for all. The matrix is orthogonal, so a product whose two operands are both transformed stays the same.
inline constexpr int64_t kHadamardSize = 16;
inline constexpr float kHadamardSigns[kHadamardSize] = {1, 1, 1, -1, 1, -1, -1, -1, -1, -1, -1, 1, -1, 1, -1, -1};

}  // namespace ridgeline::engine
