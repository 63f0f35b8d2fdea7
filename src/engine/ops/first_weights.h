// The initial weights of a model, on every device.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>

#include "engine/device/normal_numbers.h"
#include "engine/ops/philox.h"

namespace ridgeline::engine {

struct FourNumbers {
  float of[4];
};

// Returns elements 4 * quad … 4 * quad + 3, from one draw (Box & Muller, 1958), in step 0, which training never uses.
RIDGELINE_HOST_DEVICE inline FourNumbers NormalQuad(const NormalNumbers& numbers, int64_t quad) {
  const PhiloxWords draw = RandomGroup(numbers.seed, 0, numbers.stream, static_cast<uint64_t>(quad));
  FourNumbers normals{};
  for (size_t pair = 0; pair < 2; ++pair) {
    const float u = (static_cast<float>(draw.of[2 * pair] >> 8) + 1.0F) * 0x1p-24F;  // (0, 1]
    const float turn = static_cast<float>(draw.of[2 * pair + 1] >> 8) * 0x1p-24F;    // [0, 1)
    const float radius = sqrtf(-2 * logf(u));
    float sine = 0;
    float cosine = 0;
#ifdef __CUDA_ARCH__
    sincospif(2 * turn, &sine, &cosine);  // sinf and cosf accept angles of any size, and take memory
#else
    const float angle = turn * 2 * std::numbers::pi_v<float>;
    sine = sinf(angle);
    cosine = cosf(angle);
#endif
    normals.of[2 * pair] = numbers.std_dev * (radius * cosine);
    normals.of[2 * pair + 1] = numbers.std_dev * (radius * sine);
  }
  return normals;
}

}  // namespace ridgeline::engine
