// kFaultyCount numbers in device memory: 0, 1, 2, …
#pragma once

#include <gtest/gtest.h>

#include <cuda_runtime_api.h>

#include <numeric>
#include <vector>

#include "cuda_on_cpu/faulty.h"

namespace cuda_on_cpu {

constexpr size_t kNumbersBytes = kFaultyCount * sizeof(float);

inline std::vector<float> Counting() {
  std::vector<float> values(kFaultyCount);
  std::iota(values.begin(), values.end(), 0.0F);
  return values;
}

class Numbers {
 public:
  Numbers() {
    void* memory = nullptr;
    EXPECT_EQ(cudaMalloc(&memory, kNumbersBytes), cudaSuccess);
    data_ = static_cast<float*>(memory);
    EXPECT_EQ(cudaMemcpy(data_, Counting().data(), kNumbersBytes, cudaMemcpyHostToDevice), cudaSuccess);
  }
  ~Numbers() { cudaFree(data_); }
  Numbers(const Numbers&) = delete;
  Numbers& operator=(const Numbers&) = delete;

  float* data() const { return data_; }
  std::vector<float> Read() const {
    std::vector<float> values(kFaultyCount);
    EXPECT_EQ(cudaMemcpy(values.data(), data_, kNumbersBytes, cudaMemcpyDeviceToHost), cudaSuccess);
    return values;
  }

 private:
  float* data_ = nullptr;
};

}  // namespace cuda_on_cpu
