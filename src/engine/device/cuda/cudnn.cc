#include "engine/device/cuda/cudnn.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "base/error.h"
#include "base/shared_library.h"
#include "engine/device/cuda/runtime.h"

namespace ridgeline::engine {

const Cudnn& LoadCudnn() {
  static const Cudnn table = [] {
    const SharedLibrary library("cuDNN", {"libcudnn.so.9"}, "cuDNN 9 for CUDA 13", BroughtBy::kCudaPackage);
    static_assert(CUDNN_MAJOR == 9);
    Cudnn found;
#define RIDGELINE_FIND(name) library.Find(#name, found.name);
    RIDGELINE_CUDNN_FUNCTIONS(RIDGELINE_FIND)
#undef RIDGELINE_FIND
    return found;
  }();
  return table;
}

std::string CudnnWords(const Cudnn& cudnn, cudnnStatus_t status) {
  std::array<char, 512> said{};
  cudnn.cudnnGetLastErrorString(said.data(), said.size() - 1);
  const std::string_view words(said.data());
  return fmt::format("{}{}{}", cudnn.cudnnGetErrorString(status), words.empty() ? "" : ": ", words);
}

namespace {

bool IsOfMemory(cudnnStatus_t status) {
  return status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED ||
         status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
}

}  // namespace

bool IsOfMachine(cudnnStatus_t status) {
  constexpr auto kClass = [](cudnnStatus_t of) { return of / 1000; };
  switch (status) {
    case CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDA_DRIVER:
    case CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDART:
    case CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING:
    case CUDNN_STATUS_NOT_SUPPORTED_SUBLIBRARY_UNAVAILABLE:
      return true;
    default:
      return IsOfMemory(status) || kClass(status) == kClass(CUDNN_STATUS_NOT_INITIALIZED) ||
             kClass(status) == kClass(CUDNN_STATUS_EXECUTION_FAILED);
  }
}

void CheckCudnn(const Cudnn& cudnn, cudnnStatus_t status, const char* what) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  CheckLost();
  const ErrorKind kind = IsOfMemory(status)    ? ErrorKind::kOutOfMemory
                         : IsOfMachine(status) ? ErrorKind::kInfrastructure
                                               : ErrorKind::kInternal;
  throw Error(kind, fmt::format("cuDNN: {} failed: {}", what, CudnnWords(cudnn, status)));
}

}  // namespace ridgeline::engine
