// Keeps a kernel's data in registers. ptxas moves data that does not fit, and arrays with variable indices, to memory.
#pragma once

#include <utility>

namespace ridgeline::engine {

// For __launch_bounds__ of kernels with many registers: the least blocks per multiprocessor. Without a value, ptxas
// would spill a few bytes rather than allow fewer blocks than it prefers.
constexpr int kBlocksAtLeast = 1;

template <int kValue>
struct Constant {
  __device__ constexpr operator int() const { return kValue; }
};
// Calls fn(i) for each i below kCount, with i as a constant. Only arrays with constant indices stay in registers.
template <int kCount, typename Fn>
__device__ __forceinline__ void Unrolled(const Fn& fn) {
  [&]<int... i>(std::integer_sequence<int, i...>) { (fn(Constant<i>{}), ...); }
  (std::make_integer_sequence<int, kCount>());
}

}  // namespace ridgeline::engine
