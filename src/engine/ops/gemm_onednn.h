// oneDNN's matrix products, of shapes fixed beforehand.
#pragma once

#include <cstdint>
#include <dnnl.hpp>

#include "engine/tensor/tensor.h"

namespace ridgeline {

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

enum class Threading : uint8_t {
  kAll,     // run by one thread of the program, it uses all cores
  kInside,  // run inside a parallel region, by one thread
};

// Runs are made by one thread at a time; nothing is allocated but what oneDNN takes itself.
class Matmul {
 public:
  Matmul() = default;
  Matmul(const MatmulShape& shape, Threading threading);

  int64_t scratch_bytes() const { return scratch_bytes_; }
  // scratch: scratch_bytes() of it, aligned to 64. bias: nullptr where the shape has no bias.
  void Run(const void* a, const void* b, void* c, const void* bias, void* scratch);

 private:
  dnnl::stream stream_;
  dnnl::matmul primitive_;
  dnnl::memory a_, b_, c_, bias_, scratch_;
  int64_t scratch_bytes_ = 0;
};

// What of the CPU decides how products are made, as oneDNN sees it ($ONEDNN_MAX_CPU_ISA limits it).
enum class CpuIsa : uint8_t { kOther, kAvx512, kAvx512Bf16, kAmx };
CpuIsa EffectiveCpuIsa();
// Where the CPU does not multiply bf16, oneDNN emulates it slowly or not at all.
inline bool CpuMultipliesBf16() { return EffectiveCpuIsa() >= CpuIsa::kAvx512Bf16; }

// As Matmul, fp32, without a shape prepared and without scratch. Uses all cores, or one inside a parallel region.
void Sgemm(const MatmulShape& shape, const float* a, const float* b, float* c);

}  // namespace ridgeline
