// cuBLASLt's matrices lie column after column. A matrix that lies row after row is, read so, its transpose, with the
// same elements between neighbours; and c = op(a) op(b) is cᵀ = op(b)ᵀ op(a)ᵀ. So cuBLASLt is given our b as its A, our
// a as its B, c as it is, n for m and m for n, and op says for each what it says for us. Its rows are our columns: its
// bias has one number a row of cᵀ, which is ours a column. "TN", which fp8 asks for, is a (m, k) and b (n, k).
#include "engine/ops/cuda/gemm_cublaslt.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "engine/device/cuda/runtime.h"
#include "engine/device/kernel_state.h"

namespace ridgeline {
namespace {

const char* TypeName(cudaDataType_t type) {
  switch (type) {
    case CUDA_R_32F:
      return "fp32";
    case CUDA_R_16BF:
      return "bf16";
    case CUDA_R_16F:
      return "fp16";
    case CUDA_R_8F_E4M3:
      return "e4m3";
    case CUDA_R_8F_E5M2:
      return "e5m2";
    case CUDA_R_4F_E2M1:
      return "e2m1";
    default:
      return "unknown";
  }
}

int CurrentDevice() {
  int device = 0;
  CheckCuda(cudaGetDevice(&device), "cudaGetDevice");
  return device;
}

}  // namespace

std::string ProductShape::Name() const {
  return fmt::format("{} ({}, {}){} by {} ({}, {}){} into {}{}{}", TypeName(a), trans_a ? k : m, trans_a ? m : k,
                     trans_a ? " transposed" : "", TypeName(b), trans_b ? n : k, trans_b ? k : n,
                     trans_b ? " transposed" : "", TypeName(c), has_bias ? " with a bias" : "",
                     accumulate ? ", added to it" : "");
}

int AlignmentOf(const void* address) {
  return 1 << std::min(std::countr_zero(reinterpret_cast<uintptr_t>(address)), 8);
}

// The library's state of a device, for all products there.
struct CublasLtProduct::Handle {
  explicit Handle(const CublasLt& library) : handle(nullptr, library.cublasLtDestroy) {
    cublasLtHandle_t created = nullptr;
    CheckCublasLt(library.cublasLtCreate(&created), "cublasLtCreate");
    handle.reset(created);
  }
  Owned<cublasLtContext> handle;
};

CublasLtProduct::CublasLtProduct(const CublasLt& library, const ProductShape& shape, const ProductVectors& vectors)
    : library_(library),
      shape_(shape),
      product_(nullptr, library.cublasLtMatmulDescDestroy),
      a_(MakeLayout(shape.a, shape.trans_a ? shape.k : shape.m, shape.trans_a ? shape.m : shape.k, shape.lda)),
      b_(MakeLayout(shape.b, shape.trans_b ? shape.n : shape.k, shape.trans_b ? shape.k : shape.n, shape.ldb)),
      c_(MakeLayout(shape.c, shape.m, shape.n, shape.ldc)) {
  static SharedCache<std::pair<const CublasLt*, int>, const Handle> handles;
  static SharedCache<std::tuple<const CublasLt*, int, ProductShape>, const cublasLtMatmulAlgo_t> algorithms;
  const int device = CurrentDevice();
  handle_ = handles.Get({&library, device}, [&] { return std::make_shared<Handle>(library); });
  Describe(vectors);
  algorithm_ = algorithms.Get({&library, device, shape},
                              [&] { return std::make_shared<cublasLtMatmulAlgo_t>(ChooseAlgorithm()); });
}

CublasLtProduct::Layout CublasLtProduct::MakeLayout(cudaDataType_t type, int64_t rows, int64_t cols,
                                                    int64_t stride) const {
  cublasLtMatrixLayout_t layout = nullptr;
  CheckCublasLt(library_.cublasLtMatrixLayoutCreate(&layout, type, static_cast<uint64_t>(cols),
                                                    static_cast<uint64_t>(rows), stride),
                "cublasLtMatrixLayoutCreate");
  return {layout, library_.cublasLtMatrixLayoutDestroy};
}

void CublasLtProduct::Describe(const ProductVectors& vectors) {
  // fp32 is multiplied as fp32, not as TF32; of fewer bits the products are exact. All sums are fp32.
  cublasLtMatmulDesc_t product = nullptr;
  CheckCublasLt(library_.cublasLtMatmulDescCreate(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F),
                "cublasLtMatmulDescCreate");
  product_.reset(product);
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
    const cublasStatus_t status =
        library_.cublasLtMatmulDescSetAttribute(product_.get(), attribute, &value, sizeof value);
    if (status != CUBLAS_STATUS_SUCCESS) {
      CheckCublasLt(status,
                    fmt::format("setting attribute {} of the product {}", static_cast<int>(attribute), shape_.Name()));
    }
  };
  set(CUBLASLT_MATMUL_DESC_TRANSA, shape_.trans_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_TRANSB, shape_.trans_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  if (shape_.factors) set(CUBLASLT_MATMUL_DESC_POINTER_MODE, CUBLASLT_POINTER_MODE_DEVICE);
  if (shape_.has_bias) {
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, vectors.bias);
    set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, shape_.bias);
  }
  if (shape_.scales == ProductScales::kNone) return;
  cublasLtMatmulMatrixScale_t mode = CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F;
  if (shape_.scales == ProductScales::kBlock32) mode = CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0;
  if (shape_.scales == ProductScales::kBlock16) mode = CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3;
  set(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, mode);
  set(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, mode);
  set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, vectors.b_scales);
  set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, vectors.a_scales);
}

// What cuBLASLt's heuristics hold for the fastest, with the workspace and the alignments that there are.
cublasLtMatmulAlgo_t CublasLtProduct::ChooseAlgorithm() const {
  Owned<cublasLtMatmulPreferenceOpaque_t> preference(nullptr, library_.cublasLtMatmulPreferenceDestroy);
  cublasLtMatmulPreference_t created = nullptr;
  CheckCublasLt(library_.cublasLtMatmulPreferenceCreate(&created), "cublasLtMatmulPreferenceCreate");
  preference.reset(created);
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    CheckCublasLt(library_.cublasLtMatmulPreferenceSetAttribute(preference.get(), attribute, &value, sizeof value),
                  "cublasLtMatmulPreferenceSetAttribute");
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<uint64_t>(shape_.workspace_bytes));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, static_cast<uint32_t>(shape_.b_alignment));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, static_cast<uint32_t>(shape_.a_alignment));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, static_cast<uint32_t>(shape_.c_alignment));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, static_cast<uint32_t>(shape_.c_alignment));

  cublasLtMatmulHeuristicResult_t found{};
  int count = 0;
  const cublasStatus_t status =
      library_.cublasLtMatmulAlgoGetHeuristic(handle_->handle.get(), product_.get(), b_.get(), a_.get(), c_.get(),
                                              c_.get(), preference.get(), 1, &found, &count);
  if (status != CUBLAS_STATUS_SUCCESS) CheckCublasLt(status, "looking for an algorithm of " + shape_.Name());
  if (count < 1) {
    throw Error(ErrorKind::kInternal, fmt::format("cuBLASLt has no algorithm for the product {}, in a workspace of {} "
                                                  "bytes",
                                                  shape_.Name(), shape_.workspace_bytes));
  }
  CheckCublasLt(found.state, "cublasLtMatmulAlgoGetHeuristic");
  return found.algo;
}

void CublasLtProduct::Run(const void* a, const void* b, void* c, const float* factors, void* workspace,
                          cudaStream_t stream) const {
  const float one = 1;
  const float beta = shape_.accumulate ? 1 : 0;
  const cublasStatus_t status =
      library_.cublasLtMatmul(handle_->handle.get(), product_.get(), shape_.factors ? factors : &one, b, b_.get(), a,
                              a_.get(), shape_.factors ? factors + 1 : &beta, c, c_.get(), c, c_.get(),
                              algorithm_.get(), workspace, static_cast<size_t>(shape_.workspace_bytes), stream);
  if (status != CUBLAS_STATUS_SUCCESS) CheckCublasLt(status, "the product " + shape_.Name());
}

}  // namespace ridgeline
