// Runs one kernel, correct or faulty, for ThreadSanitizer, which must report the faulty one and not the correct one.
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
