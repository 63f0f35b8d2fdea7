// The libraries of tests/cuda_on_cpu in place of NVIDIA's, with any one of their calls made to fail.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>

#include "engine/comm/nccl/nccl.h"
#include "engine/device/cuda/libraries.h"

namespace ridgeline::engine {

// FakeTABLE(): a table of the fakes' functions.
#define RIDGELINE_TAKE(name) fake.name = ::name;
#define RIDGELINE_FAKE(TABLE, FUNCTIONS) \
  inline const TABLE& Fake##TABLE() {    \
    static const TABLE table = [] {      \
      TABLE fake;                        \
      FUNCTIONS(RIDGELINE_TAKE)          \
      return fake;                       \
    }();                                 \
    return table;                        \
  }
RIDGELINE_FAKE(CublasLt, RIDGELINE_CUBLASLT_FUNCTIONS)
RIDGELINE_FAKE(Cudnn, RIDGELINE_CUDNN_FUNCTIONS)
RIDGELINE_FAKE(Nccl, RIDGELINE_NCCL_FUNCTIONS)
#undef RIDGELINE_FAKE
#undef RIDGELINE_TAKE

// Attention uses our own kernels, because cuDNN's fake is for small shapes.
inline CudaLibraries FakeLibraries() { return {.cublaslt = FakeCublasLt, .cudnn = nullptr}; }

// Records the calls of the tables below, from one thread at a time.
struct LibraryWatch {
  int fails_at = 0;           // the call that fails, counted from 1; 0: none
  bool wants_memory = false;  // the failure is a lack of memory instead of another error
  int calls = 0;              // of functions that can fail
  int alive = 0;              // objects that were made and not destroyed
  std::string failed = {};    // the function that failed
};
inline LibraryWatch& ThisWatch() {
  static LibraryWatch watch;
  return watch;
}

// The result types of functions that can fail, and the failure that the watch wants from them.
template <typename Result>
constexpr bool kIsStatus = std::is_same_v<Result, cublasStatus_t> || std::is_same_v<Result, cudnnStatus_t> ||
                           std::is_same_v<Result, ncclResult_t>;
template <typename Status>
Status FailureOf(const LibraryWatch& watch) {
  if constexpr (std::is_same_v<Status, cublasStatus_t>) {
    return watch.wants_memory ? CUBLAS_STATUS_ALLOC_FAILED : CUBLAS_STATUS_EXECUTION_FAILED;
  } else if constexpr (std::is_same_v<Status, cudnnStatus_t>) {
    return watch.wants_memory ? CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED
                              : CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER;
  } else {
    return ncclSystemError;
  }
}

template <auto kFunction>
struct Watched;
template <typename Result, typename... Args, Result (*kFunction)(Args...)>
struct Watched<kFunction> {
  static inline std::string_view name;
  static Result Call(Args... args) {
    if constexpr (kIsStatus<Result>) {
      LibraryWatch& watch = ThisWatch();
      if (name.find("Destroy") != name.npos) {
        --watch.alive;
      } else if (++watch.calls == watch.fails_at) {
        watch.failed = name;
        return FailureOf<Result>(watch);
      }
      if (name.find("Create") != name.npos) ++watch.alive;
    }
    return kFunction(args...);
  }
};

// WatchedTABLE(): the fakes' functions. Each of their calls may fail.
#define RIDGELINE_WATCH(function)          \
  Watched<& ::function>::name = #function; \
  watched.function = Watched<&::function>::Call;
#define RIDGELINE_WATCHED(TABLE, FUNCTIONS) \
  inline const TABLE& Watched##TABLE() {    \
    static const TABLE table = [] {         \
      TABLE watched;                        \
      FUNCTIONS(RIDGELINE_WATCH)            \
      return watched;                       \
    }();                                    \
    return table;                           \
  }
RIDGELINE_WATCHED(CublasLt, RIDGELINE_CUBLASLT_FUNCTIONS)
RIDGELINE_WATCHED(Cudnn, RIDGELINE_CUDNN_FUNCTIONS)
RIDGELINE_WATCHED(Nccl, RIDGELINE_NCCL_FUNCTIONS)
#undef RIDGELINE_WATCHED
#undef RIDGELINE_WATCH

}  // namespace ridgeline::engine
