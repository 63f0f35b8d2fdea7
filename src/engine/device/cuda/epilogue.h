// Epilogues: another call that a library can do within a product, perhaps faster than a separate pass.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "engine/device/cuda/kernel.h"

namespace ridgeline::engine {

struct CudaEpilogue {
  std::string work;  // its key in an algorithm file; empty: there is none
  // Makes a state with which the call's run also does the other call; nullptr if the library has no such product.
  std::function<std::shared_ptr<KernelState>()> prepare;
};
// The part of `other`, a call before or after `call`, that can be done in `call`.
using FindEpilogue = CudaEpilogue (*)(const OpCall& call, const OpCall& other, const CudaRun& run);

}  // namespace ridgeline::engine
