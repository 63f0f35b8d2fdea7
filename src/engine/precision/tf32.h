// TF32: the format in which tensor cores multiply fp32 numbers (NVIDIA, PTX ISA, "Alternate floating point data
// formats"). It has fp32's 8 bits of exponent and 10 of its 23 bits of mantissa, and is stored as fp32. A product of
// two such numbers is exact in fp32, in which the products are summed.
#pragma once

#include <bit>
#include <cstdint>

namespace ridgeline::engine {

// Rounds to nearest, ties away from zero, as PTX's cvt.rna.tf32.f32. Values beyond the largest become infinite.
// Infinities and NaN stay as they are.
inline float RoundToTf32(float x) {
  constexpr uint32_t kExponent = 0x7f800000;
  constexpr uint32_t kDropped = 0x1fff;  // bits of the mantissa
  const auto bits = std::bit_cast<uint32_t>(x);
  return (bits & kExponent) == kExponent ? x : std::bit_cast<float>((bits + (kDropped + 1) / 2) & ~kDropped);
}

}  // namespace ridgeline::engine
