#include "cuda_on_cpu/faulty.h"

#include "engine/device/cuda/block.cuh"
#include "engine/device/cuda/launch.h"

namespace cuda_on_cpu {
namespace {

using ridgeline::engine::kAllLanes;
using ridgeline::engine::kWarp;
constexpr int kThreads = kFaultyCount;

__global__ void ReverseKernel(float* x) {
  __shared__ float held[kThreads];
  held[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = held[kThreads - 1 - threadIdx.x];
}

__global__ void SumKernel(float* x) {
  __shared__ float scratch[kWarp];
  const float sum = ridgeline::engine::BlockSum(x[threadIdx.x], scratch);
  if (threadIdx.x == 0) x[0] = sum;
}

__global__ void WithoutBarrier(float* x) {
  __shared__ float held[kThreads];
  held[threadIdx.x] = x[threadIdx.x];
  x[threadIdx.x] = held[kThreads - 1 - threadIdx.x];
}

__global__ void Raise(float* x) {
  if (threadIdx.x == 0) x[0] += 1;
}
__global__ void RaiseSafely(float* x) {
  if (threadIdx.x == 0) atomicAdd(x, 1.0F);
}

__global__ void OneHalf(float* x) {
  if (threadIdx.x < kThreads / 2) {
    x[threadIdx.x] = 1;
    __syncthreads();
  }
}

__global__ void TwoPlaces(float* x) {
  if (threadIdx.x < kThreads / 2) {
    __syncthreads();
  } else {
    x[threadIdx.x] = 0;
    __syncthreads();
  }
}

__global__ void LanesThatReturned(float* x) {
  if (threadIdx.x % kWarp >= kWarp / 2) return;
  x[threadIdx.x] = __shfl_xor_sync(kAllLanes, x[threadIdx.x], kWarp / 2);
}

__global__ void OutsideOfTheMask(float* x) { x[threadIdx.x] = __shfl_sync(0x0000ffff, x[threadIdx.x], 0); }

__global__ void DifferentIntrinsics(float* x) {
  if (threadIdx.x % kWarp < kWarp / 2) {
    __syncwarp();
  } else {
    x[threadIdx.x] = static_cast<float>(__any_sync(kAllLanes, 1));
  }
}

__global__ void UnwrittenShared(float* x) {
  __shared__ float held[kThreads];
  x[threadIdx.x] = held[threadIdx.x];
}

__global__ void BeyondShared(float* x) {
  __shared__ float held[kThreads];
  held[threadIdx.x + 1] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = held[threadIdx.x];
}

__global__ void BeyondDynamicShared(float* x) {
  auto* held = ridgeline::engine::DynamicShared<float>();
  held[threadIdx.x + 1] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = held[threadIdx.x];
}

__global__ void BeyondMemory(float* x) { x[threadIdx.x + 1] = 0; }

__global__ void Misaligned(float* x) {
  if (threadIdx.x == 0) ridgeline::engine::StoreVec<float, 4>(x, ridgeline::engine::LoadVec<float, 4>(x + 1));
}

void Start(void (*kernel)(float*), float* x, size_t shared_bytes = 0, unsigned blocks = 1) {
  ridgeline::engine::Launch(nullptr, {{blocks}, {kThreads}, shared_bytes}, kernel, x);
}

}  // namespace

void Reverse(float* x) { Start(ReverseKernel, x); }
void SumOfWarps(float* x) { Start(SumKernel, x); }
void ReverseWithoutBarrier(float* x) { Start(WithoutBarrier, x); }
void BarrierOfOneHalf(float* x) { Start(OneHalf, x); }
void BarriersInTwoPlaces(float* x) { Start(TwoPlaces, x); }
void ShuffleWithLanesThatReturned(float* x) { Start(LanesThatReturned, x); }
void ShuffleByLanesOutsideOfTheMask(float* x) { Start(OutsideOfTheMask, x); }
void DifferentIntrinsicsOfOneMask(float* x) { Start(DifferentIntrinsics, x); }
void RaiseWithoutAtomic(float* x) { Start(Raise, x, 0, 2); }
void RaiseByAtomic(float* x) { Start(RaiseSafely, x, 0, 2); }
void ReadUnwrittenShared(float* x) { Start(UnwrittenShared, x); }
void WriteBeyondShared(float* x) { Start(BeyondShared, x); }
void WriteBeyondDynamicShared(float* x) { Start(BeyondDynamicShared, x, kThreads * sizeof(float)); }
void WriteBeyondMemory(float* x) { Start(BeyondMemory, x); }
void ReadMisaligned(float* x) { Start(Misaligned, x); }

}  // namespace cuda_on_cpu
