// What the fake of cuBLASLt answers about algorithms. Tests set it and query it.
#pragma once

#include <cstdint>
#include <vector>

namespace cuda_on_cpu {

struct CublasLtOptions {
  // The time of each algorithm that the heuristics name, in their order. A negative time means that the algorithm is
  // refused when it is to run. Each algorithm adds up in its own order.
  std::vector<double> algorithm_ms = {0};
  // The extra time of each with an epilogue that is more than a bias. Negative: it takes less time.
  double epilogue_ms = 0;
  bool has_epilogues = true;
};
// Forgets all earlier requests.
void ResetCublasLt(const CublasLtOptions& options = {});

int64_t CublasLtProductsRun();

}  // namespace cuda_on_cpu
