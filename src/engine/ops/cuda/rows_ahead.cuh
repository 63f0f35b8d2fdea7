// Loads a thread's data of later rows from memory while the thread works on one row.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/device/cuda/block.cuh"
#include "engine/device/cuda/registers.cuh"
#include "engine/ops/cuda/vectors.h"

namespace ridgeline::engine {

constexpr int kRowsAhead = 2;

// For rows [first, last) of kTensors tensors: the first kHeld vectors of a thread in each, threadIdx.x, + blockDim.x,
// …, or as many as a row has. They take no registers on their way. They need no barrier, because a thread reads only
// what it copied itself. They use all the block's dynamic shared memory.
template <typename T, int kVec, int kTensors, int kHeld>
class RowsAhead {
 public:
  using Vector = Vec<T, kVec>;

  static constexpr size_t SharedBytes(unsigned threads) {
    return sizeof(Vector) * kRowsAhead * kTensors * kHeld * threads;
  }
  // The limit for a block. GeForces have the least shared memory, 99 KiB.
  static constexpr int kMostThreads = (96 << 10) / static_cast<int>(SharedBytes(1));

  // Copies nothing of a tensor that is null.
  __device__ RowsAhead(const T* const* from, int64_t cols, int64_t first, int64_t last)
      : cols_(cols), row_(first), last_(last) {
    Unrolled<kTensors>([&](auto t) { from_[t] = from[t]; });
    for (int i = 0; i < kRowsAhead; ++i) Start();
  }

  // Waits for the next row, which Of returns from then until Start.
  __device__ void Await() {
#ifdef __CUDACC__
    asm volatile("cp.async.wait_group %0;" ::"n"(kRowsAhead - 1) : "memory");
#endif
  }
  __device__ Vector Of(int tensor, int h) const { return LoadVec<T, kVec>(Place(tensor, h)->of); }
  // Starts loading the row after all those, in the place of the row that was awaited.
  __device__ __forceinline__ void Start() {
    if (row_ < last_) {
      Unrolled<kHeld>([&](auto h) {
        const int64_t c = int64_t{threadIdx.x + h * blockDim.x} * kVec;
        if (c >= cols_) return;
        Unrolled<kTensors>([&](auto t) {
          if (from_[t] != nullptr) Copy(Place(t, h), from_[t] + row_ * cols_ + c);
        });
      });
    }
#ifdef __CUDACC__
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
    ++row_;
    turn_ = (turn_ + 1) % kRowsAhead;
  }

 private:
  __device__ Vector* Place(int tensor, int h) const {
    const int number = (turn_ * kTensors + tensor) * kHeld + h;
    return DynamicShared<Vector>() + number * blockDim.x + threadIdx.x;
  }

  __device__ static void Copy(Vector* to, const T* from) {
#ifdef __CUDACC__
    if constexpr (sizeof(Vector) == kVectorBytes) {
      const auto shared = static_cast<unsigned>(__cvta_generic_to_shared(to));
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared), "l"(from) : "memory");
      return;
    }
#endif
    *to = LoadVec<T, kVec>(from);
  }

  const T* from_[kTensors];
  int64_t cols_;
  int64_t row_;
  int64_t last_;
  int turn_ = 0;
};

}  // namespace ridgeline::engine
