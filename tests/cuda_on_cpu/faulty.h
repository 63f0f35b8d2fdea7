// Kernels with one deliberate fault each, which the emulated machine must detect, and two correct ones. All work on
// kFaultyCount numbers in device memory, and are queued on the legacy stream.
#pragma once

namespace cuda_on_cpu {

inline constexpr int kFaultyCount = 64;

void Reverse(float* x);                         // correct: through shared memory, with the barrier that it needs
void SumOfWarps(float* x);                      // correct: x[0] becomes the sum, in a fixed order
void ReverseWithoutBarrier(float* x);           // a race in shared memory
void BarrierOfOneHalf(float* x);                // the other half of the block never arrives
void BarriersInTwoPlaces(float* x);             // all threads arrive, but at different barriers
void ShuffleWithLanesThatReturned(float* x);    // named by the mask, but gone
void ShuffleByLanesOutsideOfTheMask(float* x);  // not named by the mask, but present
void DifferentIntrinsicsOfOneMask(float* x);
void RaiseWithoutAtomic(float* x);  // x[0], by two blocks
void RaiseByAtomic(float* x);       // correct
void ReadUnwrittenShared(float* x);
void WriteBeyondShared(float* x);  // by one element, like all below
void WriteBeyondDynamicShared(float* x);
void WriteBeyondMemory(float* x);
void ReadMisaligned(float* x);  // four floats at an address that is not a multiple of 16

}  // namespace cuda_on_cpu
