// What the fake of cuBLASLt says of algorithms, for tests to choose and to ask.
#pragma once

#include <cstdint>
#include <vector>

namespace cuda_on_cpu {

struct CublasLtOptions {
  // How long each of the algorithms takes that the heuristics name, in their order; of one that is refused when it is
  // to run, less than 0. Each adds up in an order of its own.
  std::vector<double> algorithm_ms = {0};
  // How much longer each takes with an epilogue that is more than a bias; less than 0: shorter.
  double epilogue_ms = 0;
  bool has_epilogues = true;
};
// Forgets what was asked before.
void ResetCublasLt(const CublasLtOptions& options = {});

int64_t CublasLtProductsRun();

}  // namespace cuda_on_cpu
