// Our matrix product, on every CPU. It repacks operands, block by block, into the order that the inner loop
// (gemm_panels.h) reads. So every form (transposed or not, strided, stored in another number format) runs at the same
// speed, and nothing is kept between products. Blocking after Goto & van de Geijn, "Anatomy of High-Performance Matrix
// Multiplication" (2008).
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/ops/cpu/gemm_operand.h"
#include "engine/ops/cpu/gemm_panels.h"
#include "engine/tensor/tensor.h"

namespace ridgeline::engine {

// c (m, n) = scale · sum over k of a (m, k) · b (n, k) [+ bias (n)] [+ c]; ldc: elements between stored rows of c.
struct PackedShape {
  int64_t m = 0, n = 0, k = 0;
  int64_t ldc = 0;
  DType in = DType::kF32;   // the multiplied dtype: fp32, or bf16 if CpuMultipliesBf16(); sums are fp32
  DType out = DType::kF32;  // c: fp32 or bf16
  bool has_bias = false;
  DType bias = DType::kF32;
  bool accumulate = false;
  bool scaled = false;  // whether `scale` may be other than 1
};

class PackedProduct {
 public:
  // Prepares for as many threads as OpenMP would use now. It may run with fewer; of more, it uses only as many.
  explicit PackedProduct(const PackedShape& shape);

  int64_t scratch_bytes() const;  // at most 12 MiB and 0.25 MiB a thread
  // Uses all cores. The shape fixes each sum's order, not the number of threads. scratch: scratch_bytes() bytes,
  // aligned to 64. bias: nullptr if the shape has none.
  void Run(const ProductOperand& a, const ProductOperand& b, void* c, const void* bias, float scale,
           std::byte* scratch) const;

 private:
  struct Blocking;
  Blocking Cut() const;
  void Pack(const ProductOperand& operand, bool is_a, int64_t i, int64_t count, int64_t k, int64_t terms, int64_t steps,
            std::byte* room, uint32_t* to) const;

  PackedShape shape_;
  const PanelKernel* kernel_;
  int threads_;
};

}  // namespace ridgeline::engine
