// A thread's vector of elements, held in fp32 between loading and storing.
#pragma once

#include <cstdint>

#include "engine/device/cuda/block.cuh"
#include "engine/ops/cuda/vectors.h"

namespace ridgeline::engine {

template <int kVec>
struct Floats {
  float of[kVec];
};

// How many of kVec elements are loaded and stored at once. fp32 elements beside a vector of 16-bit ones take two loads.
template <int kVec, typename T>
constexpr int kAtOnce = kVec * sizeof(T) > kVectorBytes ? int{kVectorBytes / sizeof(T)} : kVec;

template <int kVec, typename T>
__device__ Floats<kVec> Load(const T* from) {
  constexpr int kEach = kAtOnce<kVec, T>;
  Floats<kVec> values;
  for (int at = 0; at < kVec; at += kEach) {
    const auto vector = LoadVec<T, kEach>(from + at);
    for (int i = 0; i < kEach; ++i) values.of[at + i] = ToFloat(vector.of[i]);
  }
  return values;
}
template <int kVec, typename T>
__device__ void Store(const Floats<kVec>& values, T* to) {
  constexpr int kEach = kAtOnce<kVec, T>;
  for (int at = 0; at < kVec; at += kEach) {
    Vec<T, kEach> vector;
    for (int i = 0; i < kEach; ++i) vector.of[i] = FromFloat<T>(values.of[at + i]);
    StoreVec(to + at, vector);
  }
}

// The first `count` elements. Others are 0, and are not accessed.
template <int kVec, typename T>
__device__ Floats<kVec> LoadFirst(const T* from, int64_t count) {
  if (count >= kVec) return Load<kVec>(from);
  Floats<kVec> values;
  for (int i = 0; i < kVec; ++i) values.of[i] = i < count ? ToFloat(from[i]) : 0.0F;
  return values;
}
template <int kVec, typename T>
__device__ void StoreFirst(const Floats<kVec>& values, T* to, int64_t count) {
  if (count >= kVec) return Store(values, to);
  for (int i = 0; i < kVec; ++i) {
    if (i < count) to[i] = FromFloat<T>(values.of[i]);
  }
}

// Calls fn(x…) for each element of the vectors.
template <typename Fn, int kVec, typename... Rest>
__device__ Floats<kVec> ForEach(const Fn& fn, const Floats<kVec>& first, const Rest&... rest) {
  Floats<kVec> out;
  for (int j = 0; j < kVec; ++j) out.of[j] = fn(first.of[j], rest.of[j]...);
  return out;
}

}  // namespace ridgeline::engine
