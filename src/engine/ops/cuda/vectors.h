// Whether a kernel may load and store 16 bytes at once.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include "engine/tensor/tensor.h"

namespace ridgeline::engine {

constexpr int64_t kVectorBytes = 16;

// Whether the rows of these tensors, in pieces of `piece` elements, are whole vectors at aligned addresses. (Storages
// are aligned to more; views begin anywhere.)
inline bool AreWholeVectors(int64_t piece, std::initializer_list<Tensor> tensors) {
  for (const Tensor& t : tensors) {
    const int64_t each = kVectorBytes / SizeOf(t.dtype);
    if (piece % each != 0 || t.offset % each != 0 || (!t.contiguous() && t.row_stride % each != 0)) return false;
  }
  return true;
}

// Calls fn(integral_constant) with the number of T in a vector, or 1.
template <typename T, typename Fn>
void WithVector(bool whole, Fn&& fn) {
  if (whole) {
    fn(std::integral_constant<int, int{kVectorBytes / sizeof(T)}>{});
  } else {
    fn(std::integral_constant<int, 1>{});
  }
}

}  // namespace ridgeline::engine
