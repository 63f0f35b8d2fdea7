// A matrix product by cuBLASLt: its descriptors and its algorithm, made once. The algorithm is the first that the
// library's heuristics name, or, where there is a file of algorithms, the fastest of the first few.
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

namespace ridgeline {

// Of what every element of a product's operands is multiplied by.
enum class ProductScales : uint8_t {
  kNone,
  kTensor,   // one fp32 number an operand; codes of 8 bits
  kBlock32,  // E8M0, a number for 32 codes of 8 bits, in tiles
  kBlock16,  // E4M3, a number for 16 codes of 4 bits, in tiles
};

// What becomes of a product's sums before they are stored as c, or is made of an operand beside them.
enum class ProductEpilogue : uint8_t {
  kNone,
  kGeluGradient,  // c = gelu'(x) of them, x (m, n) of c's dtype, its rows multiples of 8 elements
  kSumOfA,        // (1, m) of c's dtype: the sums of a over the terms; a is transposed
  kSumOfB,        // (1, n) of c's dtype: the sums of b over the terms
};

// c (m, n) = alpha · op(a) (m, k) · op(b) (k, n) [+ bias (1, n)] [+ beta · c], all stored row after row; op as Gemm's.
// lda, ldb, ldc: elements between stored rows. Products of one shape have one algorithm.
struct ProductShape {
  int64_t m = 0, n = 0, k = 0;
  int64_t lda = 0, ldb = 0, ldc = 0;
  bool trans_a = false, trans_b = false;
  cudaDataType_t a = CUDA_R_32F, b = CUDA_R_32F, c = CUDA_R_32F;
  bool tf32 = false;       // a and b are fp32, and multiplied as TF32
  bool fast_sums = false;  // of codes of 8 bits, one scale an operand: as Gemm's
  bool has_bias = false;
  cudaDataType_t bias = CUDA_R_32F;
  ProductScales scales = ProductScales::kNone;
  bool factors = false;  // alpha and beta are read on the device; else they are 1, and 0 or 1
  bool accumulate = false;
  ProductEpilogue epilogue = ProductEpilogue::kNone;  // beside one there is no bias
  int64_t epilogue_ld = 0;                            // of x: elements between rows
  int epilogue_alignment = 256;
  // In bytes, at most 256: what all data of an operand are aligned to.
  int a_alignment = 256, b_alignment = 256, c_alignment = 256;
  int64_t workspace_bytes = 0;

  auto operator<=>(const ProductShape&) const = default;
  std::string Name() const;  // for errors
  std::string Key() const;   // of an algorithm file: other shapes have others
};
// The alignment of an address, as ProductShape has it.
int AlignmentOf(const void* address);

// What lies at one place for all runs; nullptr where the shape has no such thing.
struct ProductVectors {
  const void* bias = nullptr;
  const void* a_scales = nullptr;
  const void* b_scales = nullptr;
  const void* epilogue = nullptr;  // x, or where sums go
};

// What a run multiplies.
struct ProductOperands {
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  const float* factors = nullptr;  // {alpha, beta} on the device, where the shape has them
  void* workspace = nullptr;       // the shape's bytes of it
};

class CublasLtProduct {
 public:
  // For the current device. Where `algorithms` are given and measure, it runs some on the operands, writes over c and
  // waits for the stream. Throws Error in words where cuBLASLt has no such product. `library` must outlive it.
  CublasLtProduct(const CublasLt& library, const ProductShape& shape, const ProductVectors& vectors,
                  AlgorithmFile* algorithms, const ProductOperands& on, cudaStream_t stream);

  // Queues it.
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
  cublasLtMatmulAlgo_t FastestAlgorithm(const ProductOperands& on, cudaStream_t stream) const;
  cublasLtMatmulAlgo_t ChooseAlgorithm(AlgorithmFile* algorithms, const ProductOperands& on, cudaStream_t stream) const;
  cublasStatus_t Queue(const cublasLtMatmulAlgo_t& algorithm, const ProductOperands& on, cudaStream_t stream) const;

  const CublasLt& library_;
  ProductShape shape_;
  std::shared_ptr<const Handle> handle_;
  Owned<cublasLtMatmulDescOpaque_t> product_;
  Layout a_, b_, c_;
  std::shared_ptr<const cublasLtMatmulAlgo_t> algorithm_;
};

}  // namespace ridgeline
