// NCCL, NVIDIA's library of collectives, loaded when ranks on CUDA devices first meet.
#pragma once

#include <nccl.h>

namespace ridgeline {

// Every function of it that is called here.
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

// The process's, loaded by the first call. Throws as SharedLibrary does, and where the version is too old, at every
// call.
const Nccl& LoadNccl();

// Throws Error(kInfrastructure) in words, with what NCCL says itself, unless `result` is success; `what` says what was
// tried. NCCL doesn't tell a fault of ours from one of the network's.
void CheckNccl(const Nccl& nccl, ncclResult_t result, const char* what);

}  // namespace ridgeline
