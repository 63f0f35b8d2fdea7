// The residual stream between layers: what one adds to it, the norm of the next one adds up in its own pass.
#pragma once

#include "engine/ops/norm.h"
#include "engine/tensor/tensor.h"

namespace ridgeline {

// x (tokens, hidden), which has its contents, or gets those of `sum` from the norm that reads it.
struct ResidualStream {
  Tensor x;
  ResidualSum sum = {};
};

}  // namespace ridgeline
