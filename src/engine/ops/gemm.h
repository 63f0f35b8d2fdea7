// Matrix products: every linear layer, forward and backward.
#pragma once

#include "engine/device/trace.h"
#include "engine/precision/quantizer.h"

namespace ridgeline {

enum class Trans : uint8_t { kNo, kYes };

struct GemmOperands {
  struct {
    Tensor a, b, bias;
    Tensor c;  // where it is added to
  } reads;
  struct {
    Tensor c;
  } writes;
  struct {             // on CUDA devices
    Tensor sums;       // (M, N) fp32, where cuBLASLt cannot store what c becomes
    Tensor workspace;  // cuBLASLt's, bytes
  } scratch;
};
struct GemmAttrs {
  Trans trans_a = Trans::kNo;
  Trans trans_b = Trans::kNo;
  bool accumulate = false;
  bool tf32 = false;
};
extern const Op<GemmOperands, GemmAttrs> kGemm;

// c (M, N) = op(a) (M, K) · op(b) (K, N) [+ bias (1, N), broadcast over rows] [+ c where `accumulate`].
// a and b have one floating dtype, sums are fp32, c is floating. All may be strided (row_stride >= cols).
// op(x) is x, or its transpose: a is stored (K, M) where trans_a, b is stored (N, K) where trans_b.
// tf32: a and b are fp32, and rounded to TF32 as they are multiplied, by tensor cores; where there are none it is
// emulated (precision/tf32.h). Neither c nor the bias is rounded.
// FLOPs: 2 M N K.
void Gemm(Trace& trace, Tensor a, Trans trans_a, Tensor b, Trans trans_b, Tensor c, bool accumulate = false,
          Tensor bias = {}, bool tf32 = false);

struct QuantizedGemmOperands {
  struct {
    StoredCodes a, b;
    Tensor bias;
    Tensor c;  // where it is added to
  } reads;
  struct {
    Tensor c;
  } writes;
  // On CUDA devices, where what a product needs is decided as it is recorded: its kernel does what it has the scratch
  // for.
  struct {
    Tensor a, b;     // emulated: bf16 numbers, (M, K) and (N, K); native: block scales in the tiles of tensor cores
    Tensor factors;  // (1, 2) fp32: what multiplies the sum, and what multiplies c before it is added
    Tensor sums, workspace;  // as GemmOperands'
  } scratch;
};
struct QuantizedGemmAttrs {
  Quantizer a, b;
  int64_t terms = 0;  // summed over: the padded inner dimension
  bool accumulate = false;
  bool fast_sums = false;
};
extern const Op<QuantizedGemmOperands, QuantizedGemmAttrs> kQuantizedGemm;

// c (M, N) = a (M, K) · bᵀ, b being (N, K) [+ bias (1, N)] [+ c where `accumulate`], of what a and b stand for: their
// codes times their scales. Sums are fp32, c is floating. Padding is summed over too. FLOPs: 2 M N K.
// Where the hardware has no such product it is emulated: code · block scale is exact in bf16 (and multiplied as such,
// or in fp32), and the tensor scales multiply the sum. CUDA devices multiply one scale a tensor from 8.9 and blocks
// from 10.0 on, where every dimension is a multiple of 16 (fp4: of 32), c's rows begin at multiples of 16 bytes and not
// both operands are E5M2.
// fast_sums: a GPU may keep fewer bits of the sums of codes of 8 bits than fp32 has, if that is faster, as Transformer
// Engine and PyTorch let it in linear layers' forward passes.
void Gemm(Trace& trace, const QuantizedTensor& a, const QuantizedTensor& b, Tensor c, bool accumulate = false,
          Tensor bias = {}, bool fast_sums = false);

// Whether it is a product of codes that was recorded to be emulated on its CUDA device. (On CPUs all are.)
bool IsEmulated(const OpCall& call);

// Of a product, of whichever of the two ops: c is (m, n), and k terms are summed. All 0 for a call of another op.
struct ProductSize {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
};
ProductSize ProductSizeOf(const OpCall& call);

}  // namespace ridgeline
