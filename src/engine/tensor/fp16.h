// IEEE half precision as bits, one value at a time. Kernels have their own vector forms.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace ridgeline::engine {

inline float FromFp16(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t rest = bits & 0x7fffU;
  if (rest < 0x400) {  // subnormal, or 0: a multiple of 2^-24
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(static_cast<float>(rest) * 0x1p-24F));
  }
  if (rest >= 0x7c00) return std::bit_cast<float>(sign | 0x7f800000U | (rest & 0x3ffU) << 13);
  return std::bit_cast<float>(sign | ((rest << 13) + (uint32_t{127 - 15} << 23)));
}

// Rounds to nearest, ties to even. Values that exceed 65504 by half a unit or more become infinity. A NaN stays NaN.
inline uint16_t ToFp16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000U);
  const float size = std::abs(value);
  if (std::isnan(value)) return sign | 0x7e00U;
  if (size >= 65520) return sign | 0x7c00U;
  if (size < 0x1p-14F) return sign | static_cast<uint16_t>(std::nearbyint(size * 0x1p24F));
  const uint32_t rest = (bits & 0x7fffffffU) - (uint32_t{127 - 15} << 23);
  return sign | static_cast<uint16_t>((rest + 0xfff + (rest >> 13 & 1)) >> 13);
}

}  // namespace ridgeline::engine
