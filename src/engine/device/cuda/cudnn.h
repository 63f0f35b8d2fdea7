// cuDNN's backend API, the library of attention, loaded when the first call of it is prepared.
#pragma once

#include <cudnn_graph.h>

#include <string>

namespace ridgeline::engine {

// Every function of the library that we call.
#define RIDGELINE_CUDNN_FUNCTIONS(FUNCTION) \
  FUNCTION(cudnnGetVersion)                 \
  FUNCTION(cudnnCreate)                     \
  FUNCTION(cudnnDestroy)                    \
  FUNCTION(cudnnSetStream)                  \
  FUNCTION(cudnnGetErrorString)             \
  FUNCTION(cudnnGetLastErrorString)         \
  FUNCTION(cudnnBackendCreateDescriptor)    \
  FUNCTION(cudnnBackendDestroyDescriptor)   \
  FUNCTION(cudnnBackendSetAttribute)        \
  FUNCTION(cudnnBackendGetAttribute)        \
  FUNCTION(cudnnBackendFinalize)            \
  FUNCTION(cudnnBackendExecute)

struct Cudnn {
#define RIDGELINE_MEMBER(name) decltype(&::name) name = nullptr;  // NOLINT(bugprone-macro-parentheses): a member
  RIDGELINE_CUDNN_FUNCTIONS(RIDGELINE_MEMBER)
#undef RIDGELINE_MEMBER
};

// The process's library, loaded by the first call. Throws as SharedLibrary, at every call.
const Cudnn& LoadCudnn();

// A status in cuDNN's words, with its last message in this thread.
std::string CudnnWords(const Cudnn& cudnn, cudnnStatus_t status);
// Whether the status has causes outside of the request, so that a sound machine would return another: memory ran out, a
// library that cuDNN itself loads is missing, or the device is lost.
bool IsOfMachine(cudnnStatus_t status);
// Throws Error with an explanation unless `status` is success; `what` names the operation.
void CheckCudnn(const Cudnn& cudnn, cudnnStatus_t status, const char* what);

}  // namespace ridgeline::engine
