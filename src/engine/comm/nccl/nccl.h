// NCCL, NVIDIA's library of collectives, loaded when ranks on CUDA devices first meet.
#pragma once

#include <nccl.h>

namespace ridgeline::engine {

// Every function of the library that we call.
#define RIDGELINE_NCCL_FUNCTIONS(FUNCTION) \
  FUNCTION(ncclGetVersion)                 \
  FUNCTION(ncclGetErrorString)             \
  FUNCTION(ncclGetLastError)               \
  FUNCTION(ncclGetUniqueId)                \
  FUNCTION(ncclCommInitRankConfig)         \
  FUNCTION(ncclCommGetAsyncError)          \
  FUNCTION(ncclCommFinalize)               \
  FUNCTION(ncclCommDestroy)                \
  FUNCTION(ncclCommAbort)                  \
  FUNCTION(ncclAllGather)                  \
  FUNCTION(ncclReduceScatter)              \
  FUNCTION(ncclAllReduce)

struct Nccl {
#define RIDGELINE_MEMBER(name) decltype(&::name) name = nullptr;  // NOLINT(bugprone-macro-parentheses): a member
  RIDGELINE_NCCL_FUNCTIONS(RIDGELINE_MEMBER)
#undef RIDGELINE_MEMBER
};

// The process's library, loaded by the first call. Throws as SharedLibrary, and if the version is too old, at every
// call.
const Nccl& LoadNccl();

// Throws Error(kInfrastructure) with an explanation and NCCL's own message, unless `result` is success; `what` names
// the operation. NCCL does not distinguish our faults from the network's.
void CheckNccl(const Nccl& nccl, ncclResult_t result, const char* what);

}  // namespace ridgeline::engine
