// Keeps what a kernel works on in registers: ptxas puts what does not fit, and arrays that are indexed by variables,
// into memory.
#pragma once

#include <utility>

namespace ridgeline {

// On a multiprocessor, for __launch_bounds__ of kernels with many registers: where none is given, ptxas would rather
// spill a few bytes than have fewer blocks than it likes.
constexpr int kBlocksAtLeast = 1;

template <int kValue>
struct Constant {
  __device__ constexpr operator int() const { return kValue; }
};
// fn(i) for each i below kCount, as a constant: registers hold only arrays whose indices are.
template <int kCount, typename Fn>
__device__ __forceinline__ void Unrolled(const Fn& fn) {
  [&]<int... i>(std::integer_sequence<int, i...>) { (fn(Constant<i>{}), ...); }
  (std::make_integer_sequence<int, kCount>());
}

}  // namespace ridgeline
