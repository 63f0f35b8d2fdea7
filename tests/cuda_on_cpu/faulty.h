// Kernels that are wrong on purpose, each in one way, and two that are right: what the emulated machine has to see. All
// work on kFaultyCount numbers in device memory, and are queued on the legacy stream.
#pragma once

namespace cuda_on_cpu {

inline constexpr int kFaultyCount = 64;

void Reverse(float* x);                         // right: through shared memory, with the barrier that it takes
void SumOfWarps(float* x);                      // right: x[0] becomes the sum, in a fixed order
void ReverseWithoutBarrier(float* x);           // a race in shared memory
void BarrierOfOneHalf(float* x);                // the other half of the block never comes
void BarriersInTwoPlaces(float* x);             // all come, to different ones
void ShuffleWithLanesThatReturned(float* x);    // named by the mask, and gone
void ShuffleByLanesOutsideOfTheMask(float* x);  // not named by it, and there
void DifferentIntrinsicsOfOneMask(float* x);
void RaiseWithoutAtomic(float* x);  // x[0], by two blocks
void RaiseByAtomic(float* x);       // right
void ReadUnwrittenShared(float* x);
void WriteBeyondShared(float* x);  // by one element, as all below
void WriteBeyondDynamicShared(float* x);
void WriteBeyondMemory(float* x);
void ReadMisaligned(float* x);  // four floats at an address that is no multiple of 16

}  // namespace cuda_on_cpu
