// Which random numbers a tensor starts with.
#pragma once

#include <cstdint>

namespace ridgeline::engine {

// Normal numbers of mean 0 (ops/first_weights.h), one stream per parameter. Element i is the same on every device,
// except for the last bits of the device's logarithm, sine and cosine.
struct NormalNumbers {
  uint64_t seed = 0;
  uint32_t stream = 0;
  float std_dev = 0;
};

}  // namespace ridgeline::engine
