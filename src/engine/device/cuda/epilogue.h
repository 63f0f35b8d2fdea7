// What a library can do of one call in another, a product's epilogue, which it may do faster than a pass of its own.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "engine/device/cuda/kernel.h"

namespace ridgeline {

struct CudaEpilogue {
  std::string work;  // what it is of, as an algorithm file has it; empty: there is none
  // With this state the other call is done by the call's run, too; nullptr where the library has no such product.
  std::function<std::shared_ptr<KernelState>()> prepare;
};
// What of `other`, a call before `call` or behind it, can be done in `call`.
using FindEpilogue = CudaEpilogue (*)(const OpCall& call, const OpCall& other, const CudaRun& run);

}  // namespace ridgeline
