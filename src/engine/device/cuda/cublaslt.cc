#include "engine/device/cuda/cublaslt.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/shared_library.h"
#include "engine/device/cuda/runtime.h"

// The text of what a macro expands to.
#define RIDGELINE_TEXT(macro) RIDGELINE_QUOTED(macro)
#define RIDGELINE_QUOTED(text) #text

namespace ridgeline::engine {
namespace {

const char* NameOf(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "not initialized";
    case CUBLAS_STATUS_ALLOC_FAILED:
      return "out of memory";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "invalid value";
    case CUBLAS_STATUS_ARCH_MISMATCH:
      return "this device has no such product";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "execution failed";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "not supported";
    default:
      return "internal error";
  }
}

}  // namespace

const CublasLt& LoadCublasLt() {
  static const CublasLt table = [] {
    const SharedLibrary library("cuBLASLt", {"libcublasLt.so." RIDGELINE_TEXT(CUBLAS_VER_MAJOR)},
                                "cuBLAS " RIDGELINE_TEXT(CUBLAS_VER_MAJOR) " of NVIDIA's CUDA toolkit",
                                BroughtBy::kCudaPackage);
    CublasLt found;
#define RIDGELINE_FIND(name) library.Find(#name, found.name);
    RIDGELINE_CUBLASLT_FUNCTIONS(RIDGELINE_FIND)
#undef RIDGELINE_FIND
    return found;
  }();
  return table;
}

void CheckCublasLt(cublasStatus_t status, std::string_view what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  CheckLost();
  // A lost device, or one without memory for the library, is not a fault of the program.
  const ErrorKind kind = status == CUBLAS_STATUS_ALLOC_FAILED ? ErrorKind::kOutOfMemory
                         : status == CUBLAS_STATUS_NOT_INITIALIZED || status == CUBLAS_STATUS_EXECUTION_FAILED
                             ? ErrorKind::kInfrastructure
                             : ErrorKind::kInternal;
  throw Error(kind, fmt::format("cuBLASLt: {} failed: {} ({})", what, NameOf(status), static_cast<int>(status)));
}

}  // namespace ridgeline::engine
