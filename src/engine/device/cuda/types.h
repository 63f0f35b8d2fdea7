// The C++ type of a tensor's elements on a CUDA device.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "base/error.h"
#include "engine/tensor/tensor.h"

namespace ridgeline::engine {

// Calls fn(T{}) with the type of a floating dtype. Throws Error(kInternal) for another.
template <typename Fn>
void WithCudaType(DType dtype, Fn&& fn) {
  switch (dtype) {
    case DType::kF32:
      return fn(float{});
    case DType::kBF16:
      return fn(__nv_bfloat16{});
    case DType::kF16:
      return fn(__half{});
    default:
      throw Error(ErrorKind::kInternal, "a CUDA kernel was given a dtype that is not floating-point");
  }
}

}  // namespace ridgeline::engine
