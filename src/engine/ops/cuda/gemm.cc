// The products of linear layers, by cuBLASLt. ops/gemm.cc decides when it records a product what is emulated. Here this
// follows from the scratch that the call has.
#include "engine/ops/gemm.h"

#include <algorithm>
#include <cstddef>
#include <memory>

#include "base/error.h"
#include "engine/device/cuda/libraries.h"
#include "engine/device/cuda/runtime.h"
#include "engine/ops/cuda/dequantize.h"
#include "engine/ops/cuda/gemm_cublaslt.h"
#include "engine/ops/cuda/gemm_epilogue.h"
#include "engine/ops/cuda/gemm_operands.h"
#include "engine/ops/cuda/kernels.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/record.h"

namespace ridgeline::engine {
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
      throw Error(ErrorKind::kInternal, "a product was given a dtype that is not floating-point");
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
int64_t StrideOf(const Tensor& t) { return std::max(t.row_stride, t.cols); }  // a single row may have any stride

struct Product {
  ProductShape shape;
  ProductVectors vectors;

  // Completes the operands' part of the shape with c, or `sums` in its place, and the tensors beside it.
  void Complete(const CudaRun& run, const Tensor& c, const Tensor& sums, const Tensor& bias, const Tensor& workspace,
                bool accumulate) {
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
  }
};

// A product into c, or into `sums`, from which one of our kernels makes c.
class ProductState : public KernelState {
 public:
  ProductState(const CudaRun& run, const Product& product, const ProductOperands& on, const Tensor& c,
               const Tensor& sums, const Tensor& bias, const Tensor& workspace, bool accumulate)
      : c_(c), sums_(sums), bias_(bias), workspace_(workspace), accumulate_(accumulate) {
    product_ = std::make_unique<CublasLtProduct>(run.libraries->cublaslt(), product.shape, product.vectors,
                                                 run.algorithms, run.load, WithOutputs(run, on), run.stream);
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

struct Epilogue {
  ProductEpilogue what = ProductEpilogue::kNone;
  Tensor on = {};  // x, or the destination of sums
};

Product ProductOf(const OpCall& call, const CudaRun& run, const Epilogue& epilogue) {
  const GemmOperands on = call.operands(kGemm);
  const auto& [a, b, bias, added] = on.reads;
  const GemmAttrs& attrs = call.attrs(kGemm);
  Product product;
  ProductShape& shape = product.shape;
  shape.trans_a = attrs.trans_a == Trans::kYes;
  shape.trans_b = attrs.trans_b == Trans::kYes;
  shape.k = shape.trans_a ? a.rows : a.cols;
  shape.lda = StrideOf(a);
  shape.ldb = StrideOf(b);
  shape.a = shape.b = TypeOf(a.dtype);
  shape.tf32 = attrs.tf32;
  shape.a_alignment = AlignmentOf(BytesOf(run, a));
  shape.b_alignment = AlignmentOf(BytesOf(run, b));
  if (epilogue.what != ProductEpilogue::kNone) {
    product.vectors.epilogue = BytesOf(run, epilogue.on);
    shape.epilogue = epilogue.what;
    shape.epilogue_ld = StrideOf(epilogue.on);
    shape.epilogue_alignment = AlignmentOf(product.vectors.epilogue);
  }
  product.Complete(run, on.writes.c, on.scratch.sums, bias, on.scratch.workspace, attrs.accumulate);
  return product;
}

std::shared_ptr<KernelState> PrepareProduct(const OpCall& call, const CudaRun& run, const Product& product) {
  const GemmOperands on = call.operands(kGemm);
  return std::make_shared<ProductState>(
      run, product, ProductOperands{BytesOf(run, on.reads.a), BytesOf(run, on.reads.b)}, on.writes.c, on.scratch.sums,
      on.reads.bias, on.scratch.workspace, call.attrs(kGemm).accumulate);
}
std::shared_ptr<KernelState> PrepareGemm(const OpCall& call, const CudaRun& run) {
  return PrepareProduct(call, run, ProductOf(call, run, {}));
}

bool IsSame(const Tensor& a, const Tensor& b) { return SamePlace(a, b) && IsLike(a, b); }

// The epilogues: GELU's gradient, if it changes the product's result; and the sums of the columns of an operand over
// the product's terms, if they are not added to anything. The sums have c's dtype, because that is what the library
// stores. With TF32 they would be sums of rounded numbers, but the separate pass adds up fp32 numbers.
Epilogue EpilogueOf(const OpCall& product, const OpCall& other) {
  if (product.op != &kGemm) return {};
  const auto [a, b, bias, added] = product.operands(kGemm).reads;
  const Tensor c = product.operands(kGemm).writes.c;
  if (product.operands(kGemm).scratch.sums.defined() || bias.defined()) return {};
  if (other.op == &kGeluBackward && !added.defined()) {
    const auto on = other.operands(kGeluBackward);
    constexpr int64_t kUnit = 8;  // elements
    const bool in_place = IsSame(on.reads.dy, c) && IsSame(on.writes.dx, c);
    if (in_place && c.cols % kUnit == 0 && on.reads.x.offset % kUnit == 0) {
      return {ProductEpilogue::kGeluGradient, on.reads.x};
    }
  }
  if (other.op == &kColumnSum && !other.attrs(kColumnSum).accumulate) {
    const auto on = other.operands(kColumnSum);
    const GemmAttrs& attrs = product.attrs(kGemm);
    if (on.writes.sum.dtype != c.dtype || attrs.tf32) return {};
    if (attrs.trans_a == Trans::kYes && IsSame(on.reads.x, a)) return {ProductEpilogue::kSumOfA, on.writes.sum};
    if (attrs.trans_b == Trans::kNo && IsSame(on.reads.x, b)) return {ProductEpilogue::kSumOfB, on.writes.sum};
  }
  return {};
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
  Product product;
  auto& [shape, vectors] = product;
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
    shape.fast_sums = attrs.fast_sums && shape.scales == ProductScales::kTensor;
    if (run.load != nullptr && shape.scales == ProductScales::kBlock32) {
      // As E8M0, what the slab is filled with is next to nothing, and so would be the sums. This is 1.
      for (const Tensor& tiles : {on.scratch.a, on.scratch.b}) {
        CheckCuda(cudaMemsetAsync(BytesOf(run, tiles), 0x7f, static_cast<size_t>(tiles.bytes()), run.stream),
                  "cudaMemsetAsync");
      }
    }
  }
  // Before measurements, because another beta might mean other work.
  if (run.algorithms != nullptr) MakeFactors(run, on, attrs);
  product.Complete(run, on.writes.c, on.scratch.sums, bias, on.scratch.workspace, attrs.accumulate);
  return std::make_shared<ProductState>(run, product, OperandsOf(run, call), on.writes.c, on.scratch.sums, bias,
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

CudaEpilogue GemmEpilogue(const OpCall& call, const OpCall& other, const CudaRun& run) {
  const Epilogue epilogue = EpilogueOf(call, other);
  if (epilogue.what == ProductEpilogue::kNone) return {};
  const Product product = ProductOf(call, run, epilogue);
  const auto prepare = [&call, run, product]() -> std::shared_ptr<KernelState> {
    try {
      return PrepareProduct(call, run, product);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kInternal) throw;
      CheckLost();
      return nullptr;  // cuBLASLt has no such product
    }
  };
  return {"instead of two calls, " + product.shape.Key(), prepare};
}

void AddGemmCuda(CudaKernelTable& table) {
  table[&kGemm] = {GemmCuda, PrepareGemm};
  table[&kQuantizedGemm] = {QuantizedGemmCuda, PrepareQuantizedGemm};
}

}  // namespace ridgeline::engine
