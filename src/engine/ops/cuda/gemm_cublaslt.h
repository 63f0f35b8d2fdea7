// A matrix product by cuBLASLt: its descriptors and its algorithm, created once. The algorithm is the first that the
// library's heuristics name or, if there is a file of algorithms, the fastest of the first few.
#pragma once

#include <cuda_runtime_api.h>
#include <library_types.h>

#include <compare>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/device/algorithm_file.h"
#include "engine/device/cuda/cublaslt.h"
#include "engine/device/cuda/fastest.h"

namespace ridgeline::engine {

// The scales by which the elements of a product's operands are multiplied.
enum class ProductScales : uint8_t {
  kNone,
  kTensor,   // one fp32 number per operand; codes of 8 bits
  kBlock32,  // E8M0, one number per 32 codes of 8 bits, in tiles
  kBlock16,  // E4M3, one number per 16 codes of 4 bits, in tiles
};

// What is done with a product's sums before they are stored as c, or is computed from an operand beside them.
enum class ProductEpilogue : uint8_t {
  kNone,
  kGeluGradient,  // c = gelu'(x) of them, x (m, n) of c's dtype, its rows multiples of 8 elements
  kSumOfA,        // (1, m) of c's dtype: the sums of a over the terms; a is transposed
  kSumOfB,        // (1, n) of c's dtype: the sums of b over the terms
};

// c (m, n) = alpha · op(a) (m, k) · op(b) (k, n) [+ bias (1, n)] [+ beta · c], all stored row by row; op as in Gemm.
// lda, ldb, ldc: elements between stored rows. All products of one shape use the same algorithm.
struct ProductShape {
  int64_t m = 0, n = 0, k = 0;
  int64_t lda = 0, ldb = 0, ldc = 0;
  bool trans_a = false, trans_b = false;
  cudaDataType_t a = CUDA_R_32F, b = CUDA_R_32F, c = CUDA_R_32F;
  bool tf32 = false;       // a and b are fp32, multiplied as TF32
  bool fast_sums = false;  // for codes of 8 bits with one scale per operand, as in Gemm
  bool has_bias = false;
  cudaDataType_t bias = CUDA_R_32F;
  ProductScales scales = ProductScales::kNone;
  bool factors = false;  // alpha and beta are read on the device; otherwise alpha is 1, and beta 0 or 1
  bool accumulate = false;
  ProductEpilogue epilogue = ProductEpilogue::kNone;  // excludes a bias
  int64_t epilogue_ld = 0;                            // for x: elements between rows
  int epilogue_alignment = 256;
  // In bytes, at most 256: the alignment of all data of an operand.
  int a_alignment = 256, b_alignment = 256, c_alignment = 256;
  int64_t workspace_bytes = 0;

  auto operator<=>(const ProductShape&) const = default;
  std::string Name() const;  // for error messages
  std::string Key() const;   // its key in an algorithm file; other shapes have other keys
};
// The alignment of an address, for ProductShape.
int AlignmentOf(const void* address);

// Data at the same address in all runs; nullptr if the shape has no such data.
struct ProductVectors {
  const void* bias = nullptr;
  const void* a_scales = nullptr;
  const void* b_scales = nullptr;
  const void* epilogue = nullptr;  // x, or the destination of sums
};

// The operands of a run.
struct ProductOperands {
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  const float* factors = nullptr;  // {alpha, beta} on the device, if the shape has them
  void* workspace = nullptr;       // of the shape's size
};

class CublasLtProduct {
 public:
  // For the current device. If `algorithms` is given and measures, it runs some algorithms on the operands, overwrites
  // c and waits for the stream. With `load` it does so under it, and overwrites a and b with random numbers. Throws
  // Error with an explanation if cuBLASLt has no such product. `library` must outlive it.
  CublasLtProduct(const CublasLt& library, const ProductShape& shape, const ProductVectors& vectors,
                  AlgorithmFile* algorithms, StepLoad* load, const ProductOperands& on, cudaStream_t stream);

  // Queues the product.
  void Run(const ProductOperands& on, cudaStream_t stream) const;

 private:
  template <typename Opaque>
  using Owned = std::unique_ptr<Opaque, cublasStatus_t (*)(Opaque*)>;
  struct Handle;
  using Layout = Owned<cublasLtMatrixLayoutOpaque_t>;

  Layout MakeLayout(cudaDataType_t type, int64_t rows, int64_t cols, int64_t stride) const;
  void Describe(const ProductVectors& vectors);
  std::vector<cublasLtMatmulAlgo_t> AskHeuristics(int most) const;
  bool Fits(const cublasLtMatmulAlgo_t& algorithm) const;
  cublasLtMatmulAlgo_t FastestAlgorithm(StepLoad* load, const ProductOperands& on, cudaStream_t stream) const;
  cublasLtMatmulAlgo_t ChooseAlgorithm(AlgorithmFile* algorithms, StepLoad* load, const ProductOperands& on,
                                       cudaStream_t stream) const;
  cublasStatus_t Queue(const cublasLtMatmulAlgo_t& algorithm, const ProductOperands& on, cudaStream_t stream) const;

  const CublasLt& library_;
  ProductShape shape_;
  std::shared_ptr<const Handle> handle_;
  Owned<cublasLtMatmulDescOpaque_t> product_;
  Layout a_, b_, c_;
  std::shared_ptr<const cublasLtMatmulAlgo_t> algorithm_;
};

}  // namespace ridgeline::engine
