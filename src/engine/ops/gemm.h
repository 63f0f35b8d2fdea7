// Matrix products: every linear layer, forward and backward.
#pragma once

#include "engine/device/trace.h"
#include "engine/precision/quantizer.h"

namespace ridgeline::engine {

enum class Trans : uint8_t { kNo, kYes };

struct GemmOperands {
  struct {
    Tensor a, b, bias;
    Tensor c;  // the sum that is added to
  } reads;
  struct {
    Tensor c;
  } writes;
  struct {             // on CUDA devices
    Tensor sums;       // (M, N) fp32, if cuBLASLt cannot store c's new value
    Tensor workspace;  // bytes for cuBLASLt
  } scratch;
};
struct GemmAttrs {
  Trans trans_a = Trans::kNo;
  Trans trans_b = Trans::kNo;
  bool accumulate = false;
  bool tf32 = false;
};
extern const Op<GemmOperands, GemmAttrs> kGemm;

// c (M, N) = op(a) (M, K) · op(b) (K, N) [+ bias (1, N), broadcast over rows] [+ c if `accumulate`].
// a and b have one floating dtype, sums are fp32, c is floating. All may be strided (row_stride >= cols).
// op(x) is x, or its transpose: with trans_a, a is stored (K, M); with trans_b, b is stored (N, K).
// tf32: a and b are fp32, and tensor cores round them to TF32 as they multiply. Without tensor cores this is emulated
// (precision/tf32.h). Neither c nor the bias is rounded.
// FLOPs: 2 M N K.
void Gemm(Trace& trace, Tensor a, Trans trans_a, Tensor b, Trans trans_b, Tensor c, bool accumulate = false,
          Tensor bias = {}, bool tf32 = false);

struct QuantizedGemmOperands {
  struct {
    StoredCodes a, b;
    Tensor bias;
    Tensor c;  // the sum that is added to
  } reads;
  struct {
    Tensor c;
  } writes;
  // On CUDA devices. Recording a product decides what it needs, and the kernel does what it has the scratch for.
  struct {
    Tensor a, b;     // emulated: bf16 numbers, (M, K) and (N, K); native: block scales in the tiles of tensor cores
    Tensor factors;  // (1, 2) fp32: the factor on the sum, and the factor on c before it is added
    Tensor sums, workspace;  // as in GemmOperands
  } scratch;
};
struct QuantizedGemmAttrs {
  Quantizer a, b;
  int64_t terms = 0;  // the number of summed terms: the padded inner dimension
  bool accumulate = false;
  bool fast_sums = false;
};
extern const Op<QuantizedGemmOperands, QuantizedGemmAttrs> kQuantizedGemm;

// c (M, N) = a (M, K) · bᵀ, with b (N, K) [+ bias (1, N)] [+ c if `accumulate`], of the values of a and b: their codes
// times their scales. Sums are fp32, c is floating. Padding is summed, too. FLOPs: 2 M N K.
// If the hardware has no such product, it is emulated: code · block scale is exact in bf16 (and multiplied as such, or
// in fp32), and the tensor scales multiply the sum. CUDA devices multiply one scale a tensor from 8.9 on, and blocks
// from 10.0 on, if every dimension is a multiple of 16 (fp4: of 32), c's rows begin at multiples of 16 bytes, and not
// both operands are E5M2.
// fast_sums: for codes of 8 bits, a GPU may keep fewer bits of the sums than fp32 has if that is faster. Transformer
// Engine and PyTorch allow it in the forward pass of linear layers.
void Gemm(Trace& trace, const QuantizedTensor& a, const QuantizedTensor& b, Tensor c, bool accumulate = false,
          Tensor bias = {}, bool fast_sums = false);

// Whether this is a product of codes that was recorded to be emulated on its CUDA device. (CPUs emulate all of them.)
inline bool IsEmulated(const OpCall& call) { return call.cost.emulated; }

}  // namespace ridgeline::engine
