#include "engine/ops/cuda/random_operands.h"

#include "engine/device/cuda/launch.h"
#include "engine/ops/cuda/kernels.h"
#include "engine/ops/philox.h"

namespace ridgeline::engine {
namespace {

constexpr int kRandomThreads = 256;

// Bits that all numbers have, and bits that are drawn, of the numbers in a word.
struct WordPattern {
  uint32_t fixed;
  uint32_t drawn;
  int bits;  // of a number
};
WordPattern PatternOf(cudaDataType_t type) {
  switch (type) {
    case CUDA_R_16BF:
      return {0x3f803f80, 0x807f807f, 16};
    case CUDA_R_16F:
      return {0x3c003c00, 0x83ff83ff, 16};
    case CUDA_R_8F_E4M3:
      return {0x38383838, 0x87878787, 8};
    case CUDA_R_8F_E5M2:
      return {0x3c3c3c3c, 0x83838383, 8};
    case CUDA_R_4F_E2M1:
      return {0, 0xffffffff, 4};
    default:
      return {0x3f800000, 0x807fffff, 32};
  }
}

__global__ void __launch_bounds__(kRandomThreads) RandomWords(uint32_t* to, int64_t words, WordPattern pattern) {
  const int64_t group = int64_t{blockIdx.x} * kRandomThreads + threadIdx.x;
  const PhiloxWords random = RandomGroup(0, 0, 0, static_cast<uint64_t>(group));
  for (int i = 0; i < 4; ++i) {
    if (4 * group + i < words) to[4 * group + i] = pattern.fixed | (random.of[i] & pattern.drawn);
  }
}

// A volatile read is made, although nothing uses it.
__global__ void __launch_bounds__(kRandomThreads) ReadThrough(const volatile uint32_t* from, int64_t words) {
  const int64_t stride = int64_t{gridDim.x} * kRandomThreads;
  for (int64_t i = int64_t{blockIdx.x} * kRandomThreads + threadIdx.x; i < words; i += stride) {
    [[maybe_unused]] const uint32_t word = from[i];
  }
}

}  // namespace

void WriteRandomOperand(cudaStream_t stream, cudaDataType_t type, void* to, int64_t rows, int64_t cols,
                        int64_t stride) {
  const WordPattern pattern = PatternOf(type);
  const int64_t bytes = ((rows - 1) * stride + cols) * pattern.bits / 8;
  // Whole words alone: the others keep what they have.
  const auto begin = reinterpret_cast<uintptr_t>(to);
  const uintptr_t first = (begin + 3) / 4 * 4;
  const int64_t words = (static_cast<int64_t>(begin - first) + bytes) / 4;
  Launch(stream, {{BlocksFor(words, int64_t{4} * kRandomThreads)}, {kRandomThreads}}, RandomWords,
         reinterpret_cast<uint32_t*>(first), words, pattern);
}

void ReadThroughCuda(cudaStream_t stream, const std::byte* from, int64_t bytes) {
  const int64_t words = bytes / 4;
  Launch(stream, {{BlocksFor(words, int64_t{16} * kRandomThreads)}, {kRandomThreads}}, ReadThrough,
         reinterpret_cast<const uint32_t*>(from), words);
}

}  // namespace ridgeline::engine
