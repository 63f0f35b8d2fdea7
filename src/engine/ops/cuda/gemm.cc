// The products of linear layers, by cuBLASLt. What of a product is emulated is decided where it is recorded
// (ops/gemm.cc): here it shows in the scratch that the call has.
#include "engine/ops/gemm.h"

#include <algorithm>
#include <cstddef>
#include <memory>

#include "base/error.h"
#include "engine/device/cuda/libraries.h"
#include "engine/ops/cuda/dequantize.h"
#include "engine/ops/cuda/gemm_cublaslt.h"
#include "engine/ops/cuda/gemm_operands.h"
#include "engine/ops/cuda/kernels.h"

namespace ridgeline {
namespace {

std::byte* BytesOf(const CudaRun& run, Tensor t) {
  t.offset *= SizeOf(t.dtype);
  return run.Data<std::byte>(t);
}
void* WorkspaceOf(const CudaRun& run, const Tensor& t) { return t.defined() ? BytesOf(run, t) : nullptr; }

cudaDataType_t TypeOf(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return CUDA_R_32F;
    case DType::kBF16:
      return CUDA_R_16BF;
    case DType::kF16:
      return CUDA_R_16F;
    default:
      throw Error(ErrorKind::kInternal, "a product was given a dtype that is no floating one");
  }
}
cudaDataType_t TypeOf(Format format) {
  switch (format) {
    case Format::kE4M3:
      return CUDA_R_8F_E4M3;
    case Format::kE5M2:
      return CUDA_R_8F_E5M2;
    case Format::kE2M1:
      return CUDA_R_4F_E2M1;
  }
  return CUDA_R_8F_E4M3;
}
int64_t StrideOf(const Tensor& t) { return std::max(t.row_stride, t.cols); }  // one row may have any

// A product into c, or into `sums`, from which a kernel of ours makes c.
class ProductState : public KernelState {
 public:
  // `shape` and `vectors` have what is said of the operands, and `on` those that a run multiplies.
  ProductState(const CudaRun& run, ProductShape shape, ProductVectors vectors, ProductOperands on, const Tensor& c,
               const Tensor& sums, const Tensor& bias, const Tensor& workspace, bool accumulate)
      : c_(c), sums_(sums), bias_(bias), workspace_(workspace), accumulate_(accumulate) {
    const Tensor& to = sums.defined() ? sums : c;
    shape.m = c.rows;
    shape.n = c.cols;
    shape.ldc = StrideOf(to);
    shape.c = TypeOf(to.dtype);
    shape.c_alignment = AlignmentOf(BytesOf(run, to));
    shape.accumulate = accumulate && !sums.defined();
    if (workspace.defined()) shape.workspace_bytes = workspace.bytes();
    if (bias.defined() && !sums.defined()) {
      shape.has_bias = true;
      shape.bias = TypeOf(bias.dtype);
      vectors.bias = BytesOf(run, bias);
    }
    product_ = std::make_unique<CublasLtProduct>(run.libraries->cublaslt(), shape, vectors, run.algorithms,
                                                 WithOutputs(run, on), run.stream);
  }

  // `on`: a, b and the factors.
  void Run(const CudaRun& run, const ProductOperands& on) const {
    product_->Run(WithOutputs(run, on), run.stream);
    if (sums_.defined()) FinishProduct(run, sums_, bias_, accumulate_, c_);
  }

 private:
  ProductOperands WithOutputs(const CudaRun& run, ProductOperands on) const {
    on.c = BytesOf(run, sums_.defined() ? sums_ : c_);
    on.workspace = WorkspaceOf(run, workspace_);
    return on;
  }

  Tensor c_, sums_, bias_, workspace_;
  bool accumulate_;
  std::unique_ptr<CublasLtProduct> product_;
};

std::shared_ptr<KernelState> PrepareGemm(const OpCall& call, const CudaRun& run) {
  const GemmOperands on = call.operands(kGemm);
  const auto& [a, b, bias, added] = on.reads;
  const GemmAttrs& attrs = call.attrs(kGemm);
  ProductShape shape;
  shape.trans_a = attrs.trans_a == Trans::kYes;
  shape.trans_b = attrs.trans_b == Trans::kYes;
  shape.k = shape.trans_a ? a.rows : a.cols;
  shape.lda = StrideOf(a);
  shape.ldb = StrideOf(b);
  shape.a = shape.b = TypeOf(a.dtype);
  shape.a_alignment = AlignmentOf(BytesOf(run, a));
  shape.b_alignment = AlignmentOf(BytesOf(run, b));
  return std::make_shared<ProductState>(run, shape, ProductVectors{}, ProductOperands{BytesOf(run, a), BytesOf(run, b)},
                                        on.writes.c, on.scratch.sums, bias, on.scratch.workspace, attrs.accumulate);
}

void GemmCuda(const OpCall& call, const CudaRun& run, KernelState* state) {
  const auto on = call.operands(kGemm).reads;
  static_cast<const ProductState*>(state)->Run(run, {BytesOf(run, on.a), BytesOf(run, on.b)});
}

ProductOperands OperandsOf(const CudaRun& run, const OpCall& call) {
  const QuantizedGemmOperands on = call.operands(kQuantizedGemm);
  const bool numbers = IsEmulated(call);
  return {.a = BytesOf(run, numbers ? on.scratch.a : on.reads.a.codes),
          .b = BytesOf(run, numbers ? on.scratch.b : on.reads.b.codes),
          .factors = on.scratch.factors.defined() ? run.Data<float>(on.scratch.factors) : nullptr};
}

void MakeFactors(const CudaRun& run, const QuantizedGemmOperands& on, const QuantizedGemmAttrs& attrs) {
  if (!on.scratch.factors.defined()) return;
  const bool accumulates = attrs.accumulate && !on.scratch.sums.defined();
  ProductFactors(run, on.reads.a.tensor_scale, on.reads.b.tensor_scale, accumulates ? 1 : 0, on.scratch.factors);
}

std::shared_ptr<KernelState> PrepareQuantizedGemm(const OpCall& call, const CudaRun& run) {
  const QuantizedGemmOperands on = call.operands(kQuantizedGemm);
  const auto& [a, b, bias, added] = on.reads;
  const QuantizedGemmAttrs& attrs = call.attrs(kQuantizedGemm);
  if (!on.scratch.workspace.defined()) {
    throw Error(ErrorKind::kInternal, "a product of codes was recorded for a device without CUDA");
  }
  ProductShape shape;
  ProductVectors vectors;
  shape.trans_b = true;
  shape.k = shape.lda = shape.ldb = attrs.terms;
  shape.factors = on.scratch.factors.defined();
  if (IsEmulated(call)) {
    shape.a = shape.b = CUDA_R_16BF;
  } else {
    const auto place = [&](const Quantizer& quantizer, const StoredCodes& q, const Tensor& tiles, cudaDataType_t& type,
                           int64_t& stride, int& alignment, const void*& scales) {
      type = TypeOf(quantizer.format);
      stride = StrideOf(q.codes) * (quantizer.format == Format::kE2M1 ? 2 : 1);
      alignment = AlignmentOf(BytesOf(run, q.codes));
      scales = BytesOf(run, tiles.defined() ? tiles : q.tensor_scale);
    };
    place(attrs.a, a, on.scratch.a, shape.a, shape.lda, shape.a_alignment, vectors.a_scales);
    place(attrs.b, b, on.scratch.b, shape.b, shape.ldb, shape.b_alignment, vectors.b_scales);
    const int64_t block = BlockOf(attrs.a.scaling);
    shape.scales = block == 32   ? ProductScales::kBlock32
                   : block == 16 ? ProductScales::kBlock16
                                 : ProductScales::kTensor;
  }
  if (run.algorithms != nullptr) MakeFactors(run, on, attrs);  // with another beta it might be measured at other work
  return std::make_shared<ProductState>(run, shape, vectors, OperandsOf(run, call), on.writes.c, on.scratch.sums, bias,
                                        on.scratch.workspace, attrs.accumulate);
}

void QuantizedGemmCuda(const OpCall& call, const CudaRun& run, KernelState* state) {
  const QuantizedGemmOperands on = call.operands(kQuantizedGemm);
  const auto& [a, b, bias, added] = on.reads;
  const QuantizedGemmAttrs& attrs = call.attrs(kQuantizedGemm);
  const auto& product = *static_cast<const ProductState*>(state);
  MakeFactors(run, on, attrs);
  if (IsEmulated(call)) {
    DequantizeTo(run, attrs.a, {a.codes, a.scales, {}}, on.scratch.a);
    DequantizeTo(run, attrs.b, {b.codes, b.scales, {}}, on.scratch.b);
  } else if (on.scratch.a.defined()) {
    TileScales(run, a.scales, on.scratch.a);
    TileScales(run, b.scales, on.scratch.b);
  }
  product.Run(run, OperandsOf(run, call));
}

}  // namespace

void AddGemmCuda(CudaKernelTable& table) {
  table[&kGemm] = {GemmCuda, PrepareGemm};
  table[&kQuantizedGemm] = {QuantizedGemmCuda, PrepareQuantizedGemm};
}

}  // namespace ridgeline
