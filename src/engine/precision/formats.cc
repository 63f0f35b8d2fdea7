#include "engine/precision/formats.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace ridgeline {
namespace {

// The code is exponent_steps * 2^mantissa_bits + n for a magnitude of n steps, where steps are those of the exponent:
// n is below 2^mantissa_bits for subnormals only, and a carry of n into the exponent is the next code.
template <typename Round>
uint8_t EncodeBy(const FormatInfo& info, float value, const Round& round) {
  if (std::isnan(value)) return info.nan_code;
  const float magnitude = std::min(std::abs(value), info.max);
  const int exponent = magnitude == 0 ? info.min_exponent : std::max(std::ilogb(magnitude), info.min_exponent);
  const float steps = std::ldexp(magnitude, info.mantissa_bits - exponent);  // exact
  const int code = (exponent - info.min_exponent) * (1 << info.mantissa_bits) + round(steps);
  return static_cast<uint8_t>(code | (std::signbit(value) ? info.sign_code : 0));
}

}  // namespace

uint8_t Encode(Format format, float value) {
  return EncodeBy(InfoOf(format), value, [](float steps) { return static_cast<int>(std::nearbyint(steps)); });
}

uint8_t Encode(Format format, float value, uint32_t draw, int draw_bits) {
  return EncodeBy(InfoOf(format), value, [&](float steps) {
    const auto parts = static_cast<uint32_t>(std::nearbyint(std::ldexp(steps, draw_bits)));
    return static_cast<int>((parts + draw) >> draw_bits);
  });
}

float Decode(Format format, uint8_t code) {
  const FormatInfo info = InfoOf(format);
  const int magnitude = code & (info.sign_code - 1);
  const float sign = (code & info.sign_code) != 0 ? -1.0F : 1.0F;
  if (magnitude > info.max_code) {
    const bool infinite = format == Format::kE5M2 && magnitude == info.max_code + 1;
    return infinite ? sign * std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
  }
  const int field = magnitude >> info.mantissa_bits;
  const int mantissa = magnitude & ((1 << info.mantissa_bits) - 1);
  const int steps = field == 0 ? mantissa : mantissa + (1 << info.mantissa_bits);
  return sign * std::ldexp(static_cast<float>(steps), std::max(field, 1) - 1 + info.min_exponent - info.mantissa_bits);
}

uint8_t EncodeE8M0(float value, ScaleRule rule) {
  if (std::isnan(value)) return 255;
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t up = rule == ScaleRule::kRoundUp && (bits & 0x7fffff) != 0 ? 1 : 0;
  return static_cast<uint8_t>(std::min<uint32_t>((bits >> 23) + up, 254));
}

float DecodeE8M0(uint8_t code) {
  return code == 255 ? std::numeric_limits<float>::quiet_NaN() : std::ldexp(1.0F, code - 127);
}

}  // namespace ridgeline
