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

// What was called of the table below, by one thread.
struct CublasLtWatch {
  int fails_at = 0;         // the call that fails, counted from 1; 0: none
  int calls = 0;            // of functions that can fail
  int alive = 0;            // what was made and is not destroyed
  std::string failed = {};  // the function that did
};
inline CublasLtWatch& ThisWatch() {
  static CublasLtWatch watch;
  return watch;
}

template <auto kFunction>
struct Watched;
template <typename Result, typename... Args, Result (*kFunction)(Args...)>
struct Watched<kFunction> {
  static inline std::string_view name;
  static Result Call(Args... args) {
    CublasLtWatch& watch = ThisWatch();
    if constexpr (std::is_same_v<Result, cublasStatus_t>) {
      if (name.ends_with("Destroy")) {
        --watch.alive;
      } else if (++watch.calls == watch.fails_at) {
        watch.failed = name;
        return CUBLAS_STATUS_EXECUTION_FAILED;
      }
      if (name.ends_with("Create")) ++watch.alive;
    }
    return kFunction(args...);
  }
};
inline const CublasLt& WatchedCublasLt() {
  static const CublasLt table = [] {
    CublasLt watched;
#define RIDGELINE_WATCH(function)          \
  Watched<& ::function>::name = #function; \
  watched.function = Watched<&::function>::Call;
    RIDGELINE_CUBLASLT_FUNCTIONS(RIDGELINE_WATCH)
#undef RIDGELINE_WATCH
    return watched;
  }();
  return table;
}

}  // namespace ridgeline
