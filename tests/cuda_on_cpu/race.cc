// Runs one kernel, right or faulty, for ThreadSanitizer: it has to report the second and not the first.
#include <cstring>

#include "cuda_on_cpu/numbers.h"

int main(int argc, char** argv) {
  const cuda_on_cpu::Numbers x;
  if (argc > 1 && std::strcmp(argv[1], "--faulty") == 0) {
    cuda_on_cpu::ReverseWithoutBarrier(x.data());
  } else {
    cuda_on_cpu::Reverse(x.data());
    cuda_on_cpu::SumOfWarps(x.data());
  }
  return cudaDeviceSynchronize() == cudaSuccess ? 0 : 2;
}
