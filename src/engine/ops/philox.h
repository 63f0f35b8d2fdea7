// Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011) defines every random number here.
// Each device computes these numbers, whatever its vector width; CUDA kernels call these functions.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "engine/tensor/host_device.h"

namespace ridgeline::engine {

inline constexpr uint32_t kPhiloxMultiplier0 = 0xD2511F53;
inline constexpr uint32_t kPhiloxMultiplier1 = 0xCD9E8D57;
inline constexpr uint32_t kPhiloxWeyl0 = 0x9E3779B9;
inline constexpr uint32_t kPhiloxWeyl1 = 0xBB67AE85;
inline constexpr int kPhiloxRounds = 10;

// Not a std::array, because device code cannot call its functions.
struct PhiloxKey {
  uint32_t of[2];
};
struct PhiloxWords {
  uint32_t of[4];

  // Selects instead of indexing, because a GPU would first write its registers to memory.
  RIDGELINE_HOST_DEVICE uint32_t operator[](size_t i) const {
    return i < 2 ? (i == 0 ? of[0] : of[1]) : (i == 2 ? of[2] : of[3]);
  }
  bool operator==(const PhiloxWords&) const = default;
};

RIDGELINE_HOST_DEVICE inline PhiloxWords Philox4x32(PhiloxWords counter, PhiloxKey key) {
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const uint64_t product0 = uint64_t{kPhiloxMultiplier0} * counter.of[0];
    const uint64_t product1 = uint64_t{kPhiloxMultiplier1} * counter.of[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter.of[1] ^ key.of[0], static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter.of[3] ^ key.of[1], static_cast<uint32_t>(product0)};
    key.of[0] += kPhiloxWeyl0;
    key.of[1] += kPhiloxWeyl1;
  }
  return counter;
}

// Four random words: those of elements 4 * group … 4 * group + 3 of a stream in a step.
// Counter: group in two words, stream, step. Key: seed.
RIDGELINE_HOST_DEVICE inline PhiloxWords RandomGroup(uint64_t seed, int64_t step, uint32_t stream, uint64_t group) {
  return Philox4x32(
      {static_cast<uint32_t>(group), static_cast<uint32_t>(group >> 32), stream, static_cast<uint32_t>(step)},
      {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
}

// The 32 random bits of one element of a stream in a step.
RIDGELINE_HOST_DEVICE inline uint32_t RandomBits(uint64_t seed, int64_t step, uint32_t stream, int64_t element) {
  return RandomGroup(seed, step, stream, static_cast<uint64_t>(element) / 4)[static_cast<size_t>(element % 4)];
}

// Returns the bits that round one element stochastically: 16 or 9 random ones. For 16, elements 2 i and 2 i + 1 take
// the lower and the upper half of the i-th word. For 9, they take the lower and the upper 9 bits of the i-th half of a
// word, of which 2 are the same.
RIDGELINE_HOST_DEVICE inline uint32_t RoundingBits(uint64_t seed, int64_t step, uint32_t stream, int64_t element,
                                                   int bits) {
  if (bits == 16) return RandomBits(seed, step, stream, element / 2) >> (element % 2 * 16) & 0xffff;
  const uint32_t shared = RandomBits(seed, step, stream, element / 4) >> (element / 2 % 2 * 16) & 0xffff;
  return shared >> (element % 2 * 7) & 0x1ff;
}

// Dropout keeps an element if its bits are not below this.
inline uint32_t DropoutThreshold(double p) {
  return static_cast<uint32_t>(std::min(std::llround(p * 4294967296.0), 0xffffffffLL));
}

}  // namespace ridgeline::engine
