// cuBLASLt's matrices are stored column by column. A matrix that is stored row by row is, in that view, its transpose,
// with the same elements between neighbours. And c = op(a) op(b) is cᵀ = op(b)ᵀ op(a)ᵀ. So cuBLASLt gets our b as its
// A, our a as its B, c unchanged, n for m and m for n, and each op as it is. Its rows are our columns: its bias has one
// number per row of cᵀ, which is one per column of ours. "TN", which fp8 requires, is a (m, k) and b (n, k).
#include "engine/ops/cuda/gemm_cublaslt.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "engine/device/cuda/runtime.h"
#include "engine/device/kernel_state.h"
#include "engine/ops/cuda/random_operands.h"

namespace ridgeline::engine {
namespace {

// The number of algorithms that are measured from the heuristics' list. The list's order is a guess at their speed.
constexpr int kMostMeasured = 8;

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

// "", " and …": the text after the product.
const char* EpilogueName(ProductEpilogue epilogue) {
  switch (epilogue) {
    case ProductEpilogue::kNone:
      return "";
    case ProductEpilogue::kGeluGradient:
      return ", by the slope of GELU";
    case ProductEpilogue::kSumOfA:
      return ", and the sums of the first";
    case ProductEpilogue::kSumOfB:
      return ", and the sums of the second";
  }
  return "";
}

int CurrentDevice() {
  int device = 0;
  CheckCuda(cudaGetDevice(&device), "cudaGetDevice");
  return device;
}

}  // namespace

std::string ProductShape::Name() const {
  const auto name = [&](cudaDataType_t type) { return tf32 ? "tf32" : TypeName(type); };
  return fmt::format("{} ({}, {}){} by {} ({}, {}){} into {}{}{}{}{}", name(a), trans_a ? k : m, trans_a ? m : k,
                     trans_a ? " transposed" : "", name(b), trans_b ? n : k, trans_b ? k : n,
                     trans_b ? " transposed" : "", TypeName(c), has_bias ? " with a bias" : "",
                     accumulate ? ", added to it" : "", fast_sums ? ", sums of fewer bits" : "",
                     EpilogueName(epilogue));
}

std::string ProductShape::Key() const {
  std::string product =
      fmt::format("{}; strides {} {} {}; aligned to {} {} {}; bias {}, scales {}, factors {}, workspace {}", Name(),
                  lda, ldb, ldc, a_alignment, b_alignment, c_alignment, has_bias ? TypeName(bias) : "none",
                  static_cast<int>(scales), factors ? "there" : "here", workspace_bytes);
  if (epilogue == ProductEpilogue::kNone) return product;
  return fmt::format("{}; epilogue with stride {}, aligned to {}", product, epilogue_ld, epilogue_alignment);
}

int AlignmentOf(const void* address) {
  return 1 << std::min(std::countr_zero(reinterpret_cast<uintptr_t>(address)), 8);
}

// The library's state for a device, shared by all products there.
struct CublasLtProduct::Handle {
  explicit Handle(const CublasLt& library) : handle(nullptr, library.cublasLtDestroy) {
    cublasLtHandle_t created = nullptr;
    CheckCublasLt(library.cublasLtCreate(&created), "cublasLtCreate");
    handle.reset(created);
  }
  Owned<cublasLtContext> handle;
};

CublasLtProduct::CublasLtProduct(const CublasLt& library, const ProductShape& shape, const ProductVectors& vectors,
                                 AlgorithmFile* algorithms, StepLoad* load, const ProductOperands& on,
                                 cudaStream_t stream)
    : library_(library),
      shape_(shape),
      product_(nullptr, library.cublasLtMatmulDescDestroy),
      a_(MakeLayout(shape.a, shape.trans_a ? shape.k : shape.m, shape.trans_a ? shape.m : shape.k, shape.lda)),
      b_(MakeLayout(shape.b, shape.trans_b ? shape.n : shape.k, shape.trans_b ? shape.k : shape.n, shape.ldb)),
      c_(MakeLayout(shape.c, shape.m, shape.n, shape.ldc)) {
  static SharedCache<std::pair<const CublasLt*, int>, const Handle> handles;
  static SharedCache<std::tuple<const CublasLt*, int, AlgorithmFile*, ProductShape>, const cublasLtMatmulAlgo_t> chosen;
  const int device = CurrentDevice();
  handle_ = handles.Get({&library, device}, [&] { return std::make_shared<Handle>(library); });
  Describe(vectors);
  algorithm_ = chosen.Get({&library, device, algorithms, shape}, [&] {
    return std::make_shared<cublasLtMatmulAlgo_t>(ChooseAlgorithm(algorithms, load, on, stream));
  });
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
  // fp32 is multiplied as fp32, and as TF32 only on request. Products of narrower types are exact. All sums are fp32.
  const cublasComputeType_t compute = shape_.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  cublasLtMatmulDesc_t product = nullptr;
  CheckCublasLt(library_.cublasLtMatmulDescCreate(&product, compute, CUDA_R_32F), "cublasLtMatmulDescCreate");
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
  if (shape_.fast_sums) set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, int8_t{1});
  if (shape_.factors) set(CUBLASLT_MATMUL_DESC_POINTER_MODE, CUBLASLT_POINTER_MODE_DEVICE);
  if (shape_.has_bias) {
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, vectors.bias);
    set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, shape_.bias);
  }
  // Its A is our b: see above.
  if (shape_.epilogue == ProductEpilogue::kGeluGradient) {
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_DGELU);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, vectors.epilogue);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, shape_.epilogue_ld);
  } else if (shape_.epilogue != ProductEpilogue::kNone) {
    const bool of_a = shape_.epilogue == ProductEpilogue::kSumOfA;
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, of_a ? CUBLASLT_EPILOGUE_BGRADB : CUBLASLT_EPILOGUE_BGRADA);
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, vectors.epilogue);
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

// The algorithms, one or more, that cuBLASLt's heuristics consider fastest with the given workspace and alignments.
std::vector<cublasLtMatmulAlgo_t> CublasLtProduct::AskHeuristics(int most) const {
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
  // If a product's terms are divided, the parts are added up as fp32 instead of c's dtype.
  set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));

  std::vector<cublasLtMatmulHeuristicResult_t> found(static_cast<size_t>(most));
  int count = 0;
  const cublasStatus_t status =
      library_.cublasLtMatmulAlgoGetHeuristic(handle_->handle.get(), product_.get(), b_.get(), a_.get(), c_.get(),
                                              c_.get(), preference.get(), most, found.data(), &count);
  if (status != CUBLAS_STATUS_SUCCESS) CheckCublasLt(status, "looking for an algorithm of " + shape_.Name());
  found.resize(static_cast<size_t>(std::clamp(count, 0, most)));
  std::vector<cublasLtMatmulAlgo_t> algorithms;
  for (const cublasLtMatmulHeuristicResult_t& result : found) {
    if (result.state == CUBLAS_STATUS_SUCCESS) algorithms.push_back(result.algo);
  }
  if (!algorithms.empty()) return algorithms;
  if (!found.empty()) CheckCublasLt(found.front().state, "cublasLtMatmulAlgoGetHeuristic");
  throw Error(ErrorKind::kInternal,
              fmt::format("cuBLASLt has no algorithm for the product {}, in a workspace of {} bytes", shape_.Name(),
                          shape_.workspace_bytes));
}

// A stored algorithm is only bytes, so it must be checked.
bool CublasLtProduct::Fits(const cublasLtMatmulAlgo_t& algorithm) const {
  cublasLtMatmulHeuristicResult_t result{};
  const cublasStatus_t status = library_.cublasLtMatmulAlgoCheck(handle_->handle.get(), product_.get(), b_.get(),
                                                                 a_.get(), c_.get(), c_.get(), &algorithm, &result);
  return status == CUBLAS_STATUS_SUCCESS && result.workspaceSize <= static_cast<size_t>(shape_.workspace_bytes);
}

cublasLtMatmulAlgo_t CublasLtProduct::FastestAlgorithm(StepLoad* load, const ProductOperands& on,
                                                       cudaStream_t stream) const {
  const std::vector<cublasLtMatmulAlgo_t> named = AskHeuristics(kMostMeasured);
  if (load != nullptr) {
    // The operands hold nothing yet (CudaKernel::prepare).
    const auto write = [&](cudaDataType_t type, const void* to, bool turned, int64_t rows, int64_t cols, int64_t ld) {
      WriteRandomOperand(stream, type, const_cast<void*>(to), turned ? cols : rows, turned ? rows : cols, ld);
    };
    write(shape_.a, on.a, shape_.trans_a, shape_.m, shape_.k, shape_.lda);
    write(shape_.b, on.b, shape_.trans_b, shape_.k, shape_.n, shape_.ldb);
  }
  const auto queue = [&](size_t i) {
    const cublasStatus_t status = Queue(named[i], on, stream);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED) return false;  // the heuristics named it nevertheless
    if (status != CUBLAS_STATUS_SUCCESS) CheckCublasLt(status, "measuring the product " + shape_.Name());
    return true;
  };
  const std::optional<size_t> fastest = Fastest(named.size(), queue, stream, load);
  if (!fastest) CheckCublasLt(CUBLAS_STATUS_NOT_SUPPORTED, "the product " + shape_.Name());
  return named[*fastest];
}

cublasLtMatmulAlgo_t CublasLtProduct::ChooseAlgorithm(AlgorithmFile* algorithms, StepLoad* load,
                                                      const ProductOperands& on, cudaStream_t stream) const {
  if (algorithms == nullptr) return AskHeuristics(1).front();
  cublasLtMatmulAlgo_t algorithm;
  const std::optional<std::string> kept = algorithms->Find(shape_.Key());
  if (kept && kept->size() == sizeof algorithm) {
    std::memcpy(&algorithm, kept->data(), sizeof algorithm);
    if (Fits(algorithm)) return algorithm;
  }
  if (!algorithms->measures()) return AskHeuristics(1).front();
  algorithm = FastestAlgorithm(load, on, stream);
  algorithms->Keep(shape_.Key(), {reinterpret_cast<const char*>(&algorithm), sizeof algorithm});
  return algorithm;
}

cublasStatus_t CublasLtProduct::Queue(const cublasLtMatmulAlgo_t& algorithm, const ProductOperands& on,
                                      cudaStream_t stream) const {
  const float one = 1;
  const float beta = shape_.accumulate ? 1 : 0;
  return library_.cublasLtMatmul(handle_->handle.get(), product_.get(), shape_.factors ? on.factors : &one, on.b,
                                 b_.get(), on.a, a_.get(), shape_.factors ? on.factors + 1 : &beta, on.c, c_.get(),
                                 on.c, c_.get(), &algorithm, on.workspace, static_cast<size_t>(shape_.workspace_bytes),
                                 stream);
}

void CublasLtProduct::Run(const ProductOperands& on, cudaStream_t stream) const {
  const cublasStatus_t status = Queue(*algorithm_, on, stream);
  if (status != CUBLAS_STATUS_SUCCESS) CheckCublasLt(status, "the product " + shape_.Name());
}

}  // namespace ridgeline::engine
