#include "engine/device/cuda/cudnn.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "base/error.h"
#include "engine/device/cuda/shared_library.h"

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
  const std::string words = fmt::format("cuDNN: {} failed: {}", what, CudnnWords(cudnn, status));
  switch (status / 1000) {
    case CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED / 1000:
      throw Error(status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED ? ErrorKind::kOutOfMemory
                                                                                 : ErrorKind::kInternal,
                  words);
    case CUDNN_STATUS_EXECUTION_FAILED / 1000:  // a device that is gone, say
    case CUDNN_STATUS_NOT_INITIALIZED / 1000:
      throw Error(ErrorKind::kInfrastructure, words);
    default:
      throw Error(ErrorKind::kInternal, words);
  }
}

}  // namespace ridgeline
