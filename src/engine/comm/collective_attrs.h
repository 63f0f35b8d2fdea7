// What a collective's record functions hand to its kernels.
#pragma once

#include <cstdint>

namespace ridgeline {

struct CollectiveAttrs {
  int32_t flight = 0;
  bool accumulate = false;
};

}  // namespace ridgeline
