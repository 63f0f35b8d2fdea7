// The number formats of 8 and 4 bits, one value at a time: the definition of every code. Kernels have vector forms.
// E4M3 and E5M2: Micikevicius et al., "FP8 formats for deep learning", 2022; E2M1 and E8M0: OCP Microscaling, 2023.
#pragma once

#include <cstdint>

namespace ridgeline {

// sign, exponent, mantissa. E4M3 has no infinity and one NaN (0x7f, and 0xff); E5M2's exponent 31 is infinity and NaN;
// every code of E2M1 is a number.
enum class Format : uint8_t { kE4M3, kE5M2, kE2M1 };

struct FormatInfo {
  int mantissa_bits;
  int min_exponent;   // of normal numbers; the smallest subnormal is 2^(min_exponent - mantissa_bits)
  int max_exponent;   // of the largest number
  float max;          // the largest number
  uint8_t max_code;   // its code
  uint8_t nan_code;   // what NaN becomes
  uint8_t sign_code;  // the sign's bit
};

constexpr FormatInfo InfoOf(Format format) {
  switch (format) {
    case Format::kE4M3:
      return {3, -6, 8, 448, 0x7e, 0x7f, 0x80};
    case Format::kE5M2:
      return {2, -14, 15, 57344, 0x7b, 0x7f, 0x80};
    case Format::kE2M1:
      return {1, 0, 2, 6, 0x7, 0x7, 0x8};  // no NaN: 6, as the hardware's saturating conversion gives
  }
  return {};
}

// The nearest code, ties to the even one. What is larger than the largest number, infinity too, becomes it; NaN
// becomes nan_code, whatever its sign.
uint8_t Encode(Format format, float value);
// One of the two codes around `value`, the farther from 0 with probability (|value| - nearer) / (farther - nearer), to
// the nearest 2^-draw_bits, over uniformly random `draw` of draw_bits: the decoded value is `value` on average, to half
// of that. Saturates likewise.
uint8_t Encode(Format format, float value, uint32_t draw, int draw_bits);
// Exact. Bits above the format's are ignored.
float Decode(Format format, uint8_t code);

// E8M0, 2^(code - 127): a power of two and no sign. 255 is NaN.
enum class ScaleRule : uint8_t {
  kRoundUp,  // the exponent's bits, and 1 more where any of the mantissa's is set
  kFloor,    // the exponent's bits
};
// Of a value >= 0 or NaN; infinity becomes 254.
uint8_t EncodeE8M0(float value, ScaleRule rule);
float DecodeE8M0(uint8_t code);

}  // namespace ridgeline
