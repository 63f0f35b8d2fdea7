// cuDNN's backend API, the library of attention, loaded when the first call of it is prepared.
#pragma once

#include <cudnn_graph.h>

#include <string>

namespace ridgeline {

// Every function of it that is called here.
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

// The process's, loaded by the first call. Throws as SharedLibrary does, at every call.
const Cudnn& LoadCudnn();

// A status in cuDNN's words, with what it last said in this thread.
std::string CudnnWords(const Cudnn& cudnn, cudnnStatus_t status);
// Whether the status says nothing of what was asked, and would be another on a machine in order: memory ran out, a
// library that cuDNN itself loads is missing, the device is gone.
bool IsOfMachine(cudnnStatus_t status);
// Throws Error in words unless `status` is success; `what` says what was tried.
void CheckCudnn(const Cudnn& cudnn, cudnnStatus_t status, const char* what);

}  // namespace ridgeline
