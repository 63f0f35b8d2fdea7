// The residual stream between layers. The next layer's norm computes the sum that a layer adds to it, in its own pass.
#pragma once

#include "engine/ops/norm.h"
#include "engine/tensor/tensor.h"

namespace ridgeline::engine {

// x (tokens, hidden) has its contents, or gets those of `sum` from the norm that reads it.
struct ResidualStream {
  Tensor x;
  ResidualSum sum = {};
};

}  // namespace ridgeline::engine
