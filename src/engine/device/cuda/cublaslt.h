// cuBLASLt, the library of matrix products, loaded when the first product is prepared.
#pragma once

#include <cublasLt.h>

#include <string_view>

namespace ridgeline::engine {

// Every function of the library that we call.
#define RIDGELINE_CUBLASLT_FUNCTIONS(FUNCTION)   \
  FUNCTION(cublasLtCreate)                       \
  FUNCTION(cublasLtDestroy)                      \
  FUNCTION(cublasLtGetVersion)                   \
  FUNCTION(cublasLtMatrixLayoutCreate)           \
  FUNCTION(cublasLtMatrixLayoutDestroy)          \
  FUNCTION(cublasLtMatmulDescCreate)             \
  FUNCTION(cublasLtMatmulDescDestroy)            \
  FUNCTION(cublasLtMatmulDescSetAttribute)       \
  FUNCTION(cublasLtMatmulPreferenceCreate)       \
  FUNCTION(cublasLtMatmulPreferenceDestroy)      \
  FUNCTION(cublasLtMatmulPreferenceSetAttribute) \
  FUNCTION(cublasLtMatmulAlgoGetHeuristic)       \
  FUNCTION(cublasLtMatmulAlgoCheck)              \
  FUNCTION(cublasLtMatmul)

struct CublasLt {
#define RIDGELINE_MEMBER(name) decltype(&::name) name = nullptr;  // NOLINT(bugprone-macro-parentheses): a member
  RIDGELINE_CUBLASLT_FUNCTIONS(RIDGELINE_MEMBER)
#undef RIDGELINE_MEMBER
};

// The process's library, loaded by the first call. Throws as SharedLibrary, at every call.
const CublasLt& LoadCublasLt();

// Throws Error with an explanation unless `status` is success; `what` names the operation.
void CheckCublasLt(cublasStatus_t status, std::string_view what);

}  // namespace ridgeline::engine
