// How values of several ranks become one.
#pragma once

#include <cstdint>

namespace ridgeline::engine {

enum class Reduction : uint8_t { kSum, kMax, kMean };

}  // namespace ridgeline::engine
