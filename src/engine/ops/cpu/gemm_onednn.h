// oneDNN's matrix products of shapes that are fixed beforehand: those of attention's blocks.
#pragma once

#include <cstdint>
#include <dnnl.hpp>

#include "engine/tensor/tensor.h"

namespace ridgeline::engine {

// c (m, n) = op(a) (m, k) · op(b) (k, n) [+ bias (n)] [+ c]; lda, ldb, ldc: elements between stored rows.
struct MatmulShape {
  int64_t m = 0, n = 0, k = 0;
  int64_t lda = 0, ldb = 0, ldc = 0;
  bool trans_a = false, trans_b = false;
  DType in = DType::kF32;   // a and b
  DType out = DType::kF32;  // c
  bool has_bias = false;
  DType bias = DType::kF32;
  bool accumulate = false;
};

// A product that one thread makes and runs, whatever number OpenMP would use, so its bits do not depend on that number.
// One thread at a time may run it. It allocates nothing besides oneDNN's own memory.
class Matmul {
 public:
  Matmul() = default;
  explicit Matmul(const MatmulShape& shape);

  int64_t scratch_bytes() const { return scratch_bytes_; }
  // scratch: scratch_bytes() bytes, aligned to 64. bias: nullptr if the shape has no bias.
  void Run(const void* a, const void* b, void* c, const void* bias, void* scratch);

 private:
  dnnl::stream stream_;
  dnnl::matmul primitive_;
  dnnl::memory a_, b_, c_, bias_, scratch_;
  int64_t scratch_bytes_ = 0;
};

}  // namespace ridgeline::engine
