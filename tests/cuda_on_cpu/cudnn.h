// What the fake of cuDNN answers about plans. Tests set it and query it.
#pragma once

#include <cstdint>
#include <vector>

namespace cuda_on_cpu {

struct CudnnOptions {
  int64_t proposals = 1;  // the number that it makes for a graph
  int64_t workspace_bytes = 256;
  bool first_fails = false;                // to be built
  bool first_is_nondeterministic = false;  // as its engine notes
  std::vector<double> ms = {};             // the time of a run of each proposal; the last one holds for the rest
};
// Forgets all earlier requests.
void ResetCudnn(const CudnnOptions& options = {});

int64_t CudnnPlansBuilt();
int64_t CudnnPlansRun();

}  // namespace cuda_on_cpu
