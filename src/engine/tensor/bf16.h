// bfloat16 as bits, one value at a time. Kernels have their own vector forms.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace ridgeline::engine {

inline float FromBf16(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

// Rounds to nearest, ties to even. A NaN stays NaN.
inline uint16_t ToBf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

}  // namespace ridgeline::engine
