// Which random numbers a tensor is to begin with.
#pragma once

#include <cstdint>

namespace ridgeline {

// Normal numbers of mean 0 (ops/first_weights.h), a stream a parameter. Element i is the same wherever it is made, but
// for the last bits of a device's logarithm, sine and cosine.
struct NormalNumbers {
  uint64_t seed = 0;
  uint32_t stream = 0;
  float std_dev = 0;
};

}  // namespace ridgeline
