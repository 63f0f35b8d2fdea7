#include "engine/comm/nccl/collective_kernels.h"

#include <cstdint>

#include "engine/device/cuda/block.cuh"
#include "engine/device/cuda/launch.h"
#include "engine/device/cuda/types.h"

namespace ridgeline::engine {
namespace {

constexpr int kCollectiveThreads = 256;

// A store that the host's threads can read while the device writes.
__device__ void StoreForHost(uint64_t* to, uint64_t value) {
#ifdef __CUDACC__
  *static_cast<volatile uint64_t*>(to) = value;
  __threadfence_system();
#else
  std::atomic_ref(*to).store(value, std::memory_order_relaxed);
#endif
}

// Moves two words over the bus: about 2 us, twice per collective, in parallel with computation.
__global__ void Count(uint64_t* count) { StoreForHost(count, *count + 1); }

// A thread handles `width` elements at once. If width is more than 1, they are whole aligned vectors. Bytes: 4 of the
// mean, and `to` once or twice. For bf16, accumulated, 8 bytes per element: 27e6 elements (a layer of llama-8b on 8
// ranks) are 218 MB, 51 us.
template <typename T, int width>
__global__ void TakeMean(const float* mean, T* to, int64_t vectors, bool accumulate) {
  const int64_t vector = static_cast<int64_t>(blockIdx.x) * kCollectiveThreads + threadIdx.x;
  if (vector >= vectors) return;
  const auto from = LoadVec<float, width>(mean + vector * width);
  Vec<T, width> result;
  if (accumulate) result = LoadVec<T, width>(to + vector * width);
  for (int i = 0; i < width; ++i) {
    result.of[i] = FromFloat<T>(accumulate ? from.of[i] + ToFloat(result.of[i]) : from.of[i]);
  }
  StoreVec(to + vector * width, result);
}

template <typename T, int width>
void LaunchTakeMean(const float* mean, T* to, int64_t elements, bool accumulate, cudaStream_t stream) {
  if (elements < width) return;
  const int64_t vectors = elements / width;
  Launch(stream, {dim3(BlocksFor(vectors, kCollectiveThreads)), dim3(kCollectiveThreads)}, TakeMean<T, width>, mean, to,
         vectors, accumulate);
}

template <typename T>
__global__ void SumOfEquals(T* values, int64_t count, int64_t equals) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kCollectiveThreads + threadIdx.x;
  if (i >= count) return;
  const float value = ToFloat(values[i]);
  T sum = values[i];
  for (int64_t n = 1; n < equals; ++n) sum = FromFloat<T>(ToFloat(sum) + value);
  values[i] = sum;
}

}  // namespace

void CountCuda(uint64_t* count, cudaStream_t stream) { Launch(stream, {dim3(1), dim3(1)}, Count, count); }

void TakeMeanCuda(const float* mean, DType dtype, void* to, int64_t elements, bool accumulate, cudaStream_t stream) {
  WithCudaType(dtype, [&](auto type) {
    using T = decltype(type);
    constexpr int kWidth = 16 / sizeof(T);
    auto* typed = static_cast<T*>(to);
    const bool whole_vectors = reinterpret_cast<uintptr_t>(mean) % alignof(Vec<float, kWidth>) == 0 &&
                               reinterpret_cast<uintptr_t>(to) % alignof(Vec<T, kWidth>) == 0;
    const int64_t in_vectors = whole_vectors ? elements / kWidth * kWidth : 0;
    LaunchTakeMean<T, kWidth>(mean, typed, in_vectors, accumulate, stream);
    LaunchTakeMean<T, 1>(mean + in_vectors, typed + in_vectors, elements - in_vectors, accumulate, stream);
  });
}

void SumOfEqualsCuda(void* values, DType dtype, int64_t count, int64_t equals, cudaStream_t stream) {
  if (count == 0) return;
  WithCudaType(dtype, [&](auto type) {
    using T = decltype(type);
    Launch(stream, {dim3(BlocksFor(count, kCollectiveThreads)), dim3(kCollectiveThreads)}, SumOfEquals<T>,
           static_cast<T*>(values), count, equals);
  });
}

}  // namespace ridgeline::engine
