// The number formats of 8 and 4 bits, one value at a time. This file defines every code. CUDA kernels call these
// functions; the CPU kernels have vector forms of them.
// E4M3 and E5M2: Micikevicius et al., "FP8 formats for deep learning", 2022; E2M1 and E8M0: OCP Microscaling, 2023.
#pragma once

#include <cstdint>

#include "engine/tensor/host_device.h"

namespace ridgeline::engine {

// The bits are sign, exponent, mantissa. E4M3 has no infinity and one NaN (0x7f, and 0xff). E5M2's exponent 31 is
// infinity and NaN. Every code of E2M1 is a number.
enum class Format : uint8_t { kE4M3, kE5M2, kE2M1 };

struct FormatInfo {
  int mantissa_bits;
  int min_exponent;   // of normal numbers; the smallest subnormal is 2^(min_exponent - mantissa_bits)
  int max_exponent;   // of the largest number
  float max;          // the largest number
  uint8_t max_code;   // its code
  uint8_t nan_code;   // the code for NaN
  uint8_t sign_code;  // the sign bit
};

RIDGELINE_HOST_DEVICE constexpr FormatInfo InfoOf(Format format) {
  switch (format) {
    case Format::kE4M3:
      return {3, -6, 8, 448, 0x7e, 0x7f, 0x80};
    case Format::kE5M2:
      return {2, -14, 15, 57344, 0x7b, 0x7f, 0x80};
    case Format::kE2M1:
      return {1, 0, 2, 6, 0x7, 0x7, 0x8};  // no NaN: it becomes 6, as in the hardware's saturating conversion
  }
  return {};
}

// A float's bits and back. std::bit_cast would do, but device code cannot call it.
RIDGELINE_HOST_DEVICE inline uint32_t BitsOf(float value) { return __builtin_bit_cast(uint32_t, value); }
RIDGELINE_HOST_DEVICE inline float FloatOf(uint32_t bits) { return __builtin_bit_cast(float, bits); }
inline constexpr uint32_t kMagnitudeBits = 0x7fffffff;
inline constexpr uint32_t kInfinityBits = 0x7f800000;  // larger magnitudes are NaN
inline constexpr uint32_t kNanBits = 0x7fc00000;
// Returns 2^exponent. REQUIRES: it is a normal number.
RIDGELINE_HOST_DEVICE inline float PowerOf2(int exponent) {
  return FloatOf(static_cast<uint32_t>(exponent + 127) << 23);
}
// Returns the integer nearest to a number in [0, 2^22], ties to even: the last bits of its sum with 2^23.
RIDGELINE_HOST_DEVICE inline uint32_t NearestInteger(float value) { return BitsOf(value + 8388608.0F) - 0x4b000000; }

// The code is exponent_steps * 2^mantissa_bits + n for a magnitude of n steps, and the exponent sets the size of a
// step. n is below 2^mantissa_bits for subnormals only, and a carry of n into the exponent gives the next code.
template <typename Round>
RIDGELINE_HOST_DEVICE uint8_t EncodeBy(const FormatInfo& info, float value, const Round& round) {
  const uint32_t bits = BitsOf(value);
  if ((bits & kMagnitudeBits) > kInfinityBits) return info.nan_code;
  const uint32_t max = BitsOf(info.max);
  const uint32_t magnitude = (bits & kMagnitudeBits) < max ? bits & kMagnitudeBits : max;
  const int own = static_cast<int>(magnitude >> 23) - 127;
  const int exponent = own > info.min_exponent ? own : info.min_exponent;
  const float steps = FloatOf(magnitude) * PowerOf2(info.mantissa_bits - exponent);  // exact
  const uint32_t code = (static_cast<uint32_t>(exponent - info.min_exponent) << info.mantissa_bits) + round(steps);
  return static_cast<uint8_t>(code | (bits > kMagnitudeBits ? info.sign_code : 0U));
}

// Returns the nearest code, ties to even. Values above the largest number, and infinity, become the largest number. NaN
// becomes nan_code, whatever its sign.
RIDGELINE_HOST_DEVICE inline uint8_t Encode(Format format, float value) {
  return EncodeBy(InfoOf(format), value, [](float steps) { return NearestInteger(steps); });
}
// Returns one of the two codes around `value`, over uniformly random `draw` of draw_bits, at most 16 bits. The one
// farther from 0 has the probability (|value| - nearer) / (farther - nearer), to the nearest 2^-draw_bits. So the
// decoded value is `value` on average, to half of that. Saturates likewise.
RIDGELINE_HOST_DEVICE inline uint8_t Encode(Format format, float value, uint32_t draw, int draw_bits) {
  return EncodeBy(InfoOf(format), value, [draw, draw_bits](float steps) {
    return (NearestInteger(steps * PowerOf2(draw_bits)) + draw) >> draw_bits;
  });
}

// Exact. Bits above the format's are ignored.
RIDGELINE_HOST_DEVICE inline float Decode(Format format, uint8_t code) {
  const FormatInfo info = InfoOf(format);
  const int magnitude = code & (info.sign_code - 1);
  const uint32_t sign = (code & info.sign_code) != 0 ? ~kMagnitudeBits : 0;
  if (magnitude > info.max_code) {
    const bool infinite = format == Format::kE5M2 && magnitude == info.max_code + 1;
    return FloatOf(infinite ? kInfinityBits | sign : kNanBits);
  }
  const int shift = 23 - info.mantissa_bits;
  const uint32_t shifted = static_cast<uint32_t>(magnitude) << shift;
  const float smallest_normal = PowerOf2(info.min_exponent);
  const float value = magnitude < 1 << info.mantissa_bits
                          ? FloatOf(shifted + BitsOf(smallest_normal)) - smallest_normal  // lacks the leading 1
                          : FloatOf(shifted + BitsOf(smallest_normal) - (1U << 23));
  return FloatOf(BitsOf(value) | sign);
}

// E8M0, 2^(code - 127): a power of two without a sign. 255 is NaN.
enum class ScaleRule : uint8_t {
  kRoundUp,  // the exponent's bits, plus 1 if any bit of the mantissa is set
  kFloor,    // the exponent's bits
};
// REQUIRES: value >= 0 or NaN. Infinity becomes 254.
RIDGELINE_HOST_DEVICE inline uint8_t EncodeE8M0(float value, ScaleRule rule) {
  const uint32_t bits = BitsOf(value);
  if ((bits & kMagnitudeBits) > kInfinityBits) return 255;
  const uint32_t code = (bits >> 23) + (rule == ScaleRule::kRoundUp && (bits & 0x7fffff) != 0 ? 1 : 0);
  return static_cast<uint8_t>(code < 254 ? code : 254);
}
RIDGELINE_HOST_DEVICE inline float DecodeE8M0(uint8_t code) {
  if (code == 255) return FloatOf(kNanBits);
  return code == 0 ? FloatOf(1U << 22) : PowerOf2(code - 127);  // 2^-127 is subnormal
}

}  // namespace ridgeline::engine
