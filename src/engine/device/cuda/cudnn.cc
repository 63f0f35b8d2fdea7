#include "engine/device/cuda/cudnn.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "base/error.h"
#include "base/shared_library.h"

namespace ridgeline {

const Cudnn& LoadCudnn() {
  static const Cudnn table = [] {
    const SharedLibrary library("cuDNN", {"libcudnn.so.9"}, "cuDNN 9 for CUDA 13");
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

void CheckCudnn(const Cudnn& cudnn, cudnnStatus_t status, const char* what) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  // A device that is gone, or has no memory left for the library, is not a fault of the program.
  constexpr auto kClass = [](cudnnStatus_t of) { return of / 1000; };
  const ErrorKind kind = status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED ? ErrorKind::kOutOfMemory
                         : kClass(status) == kClass(CUDNN_STATUS_NOT_INITIALIZED) ||
                                 kClass(status) == kClass(CUDNN_STATUS_EXECUTION_FAILED)
                             ? ErrorKind::kInfrastructure
                             : ErrorKind::kInternal;
  throw Error(kind, fmt::format("cuDNN: {} failed: {}", what, CudnnWords(cudnn, status)));
}

}  // namespace ridgeline
