#include "engine/device/cuda/runtime.h"

#include <fmt/format.h>

#include "base/error.h"

namespace ridgeline {

void CheckCuda(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  throw Error(ErrorKind::kInfrastructure,
              fmt::format("{}: {} ({})", what, cudaGetErrorString(error), cudaGetErrorName(error)));
}

}  // namespace ridgeline
