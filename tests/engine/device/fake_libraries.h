// The libraries of tests/cuda_on_cpu in the place of NVIDIA's, and any one of their calls made to fail.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>

#include "engine/comm/nccl/nccl.h"
#include "engine/device/cuda/libraries.h"

namespace ridgeline {

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

// Attention takes its own kernels: cuDNN's fake is for small shapes.
inline CudaLibraries FakeLibraries() { return {.cublaslt = FakeCublasLt, .cudnn = nullptr}; }

// What was called of the tables below, by one thread at a time.
struct LibraryWatch {
  int fails_at = 0;           // the call that fails, counted from 1; 0: none
  bool wants_memory = false;  // and says that it found none, instead of another failure
  int calls = 0;              // of functions that can fail
  int alive = 0;              // what was made and is not destroyed
  std::string failed = {};    // the function that did
};
inline LibraryWatch& ThisWatch() {
  static LibraryWatch watch;
  return watch;
}

// What a library's functions return that can fail, and the failure that the watch wants of them.
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

// WatchedTABLE(): the fakes' functions, each call of which may fail.
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

}  // namespace ridgeline
