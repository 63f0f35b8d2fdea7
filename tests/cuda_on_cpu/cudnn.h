// What the fake of cuDNN says of plans, for tests to choose and to ask.
#pragma once

#include <cstdint>

namespace cuda_on_cpu {

struct CudnnOptions {
  int64_t proposals = 1;  // that it makes for a graph
  int64_t workspace_bytes = 256;
  bool first_fails = false;                // to be built
  bool first_is_nondeterministic = false;  // as its engine notes
};
// Forgets what was asked before.
void ResetCudnn(const CudnnOptions& options = {});

int64_t CudnnPlansBuilt();
int64_t CudnnPlansRun();

}  // namespace cuda_on_cpu
