// Code that kernels share: sums over a warp and over a block in a fixed order, dynamic shared memory, and vectors of
// elements.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace ridgeline::engine {

constexpr int kWarp = 32;
constexpr unsigned kAllLanes = 0xffffffff;

// The block's dynamic shared memory. (A function, not `extern __shared__ T name[]` in every kernel: two of these with
// different types are an error in one translation unit, and a C++ compiler has no such storage.)
template <typename T>
__device__ T* DynamicShared() {
#ifdef __CUDACC__
  extern __shared__ __align__(16) unsigned char bytes[];
  return reinterpret_cast<T*>(bytes);
#else
  return reinterpret_cast<T*>(cuda_on_cpu::dynamic_shared_memory);
#endif
}

template <typename T>
__device__ T WarpSum(T value) {
  for (int lanes = kWarp / 2; lanes > 0; lanes /= 2) value += __shfl_xor_sync(kAllLanes, value, lanes);
  return value;
}
__device__ inline float WarpMax(float value) {
  for (int lanes = kWarp / 2; lanes > 0; lanes /= 2) value = fmaxf(value, __shfl_xor_sync(kAllLanes, value, lanes));
  return value;
}

// The sum, or the largest, over a block of whole warps, for all of its threads, in an order that depends only on the
// block's size. `scratch`: 32 numbers of shared memory, which are free again after the block's next barrier.
template <typename T>
__device__ T BlockSum(T value, T* scratch) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int warps = static_cast<int>(blockDim.x) / kWarp;
  value = WarpSum(value);
  if (lane == 0) scratch[warp] = value;
  __syncthreads();
  return WarpSum(lane < warps ? scratch[lane] : T{0});
}
__device__ inline float BlockMax(float value, float* scratch) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int warps = static_cast<int>(blockDim.x) / kWarp;
  value = WarpMax(value);
  if (lane == 0) scratch[warp] = value;
  __syncthreads();
  return WarpMax(scratch[lane < warps ? lane : 0]);
}

__device__ inline float ToFloat(float x) { return x; }
__device__ inline float ToFloat(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ inline float ToFloat(__half x) { return __half2float(x); }
// Rounded to nearest, ties to even.
template <typename T>
__device__ T FromFloat(float x);
template <>
__device__ inline float FromFloat<float>(float x) {
  return x;
}
template <>
__device__ inline __nv_bfloat16 FromFloat<__nv_bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}
template <>
__device__ inline __half FromFloat<__half>(float x) {
  return __float2half_rn(x);
}

// kCount elements that are loaded and stored at once. Their address is a multiple of their bytes (UBSan checks this).
template <typename T, int kCount>
struct alignas(sizeof(T) * kCount) Vec {
  T of[kCount];
};
template <typename T, int kCount>
__device__ Vec<T, kCount> LoadVec(const T* from) {
  return *static_cast<const Vec<T, kCount>*>(__builtin_assume_aligned(from, sizeof(T) * kCount));
}
template <typename T, int kCount>
__device__ void StoreVec(T* to, const Vec<T, kCount>& vec) {
  *static_cast<Vec<T, kCount>*>(__builtin_assume_aligned(to, sizeof(T) * kCount)) = vec;
}

}  // namespace ridgeline::engine
