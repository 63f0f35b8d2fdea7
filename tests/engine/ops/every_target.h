// Tests of the vectorised kernels: each runs on every instruction set that they are compiled for and this CPU has.
#pragma once

#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

// clang-format off: before Highway
#include "engine/ops/cpu/simd_targets.h"
// clang-format on
#include <hwy/targets.h>

#include "engine/device/cpu/kernel.h"
#include "engine/ops/cpu/kernels.h"
#include "tests/engine/ops/op_runner.h"

namespace ridgeline {

inline std::vector<int64_t> CompiledTargets() {
  std::vector<int64_t> targets;
  const int64_t able = hwy::SupportedTargets() | HWY_STATIC_TARGET;
  for (int64_t bits = HWY_TARGETS & able; bits != 0; bits &= bits - 1) targets.push_back(bits & -bits);
  return targets;
}

// The parameter is a target; Kernels gives what `add` registers there.
class EveryTarget : public testing::TestWithParam<int64_t> {
 protected:
  CpuKernelTable Kernels(void (*add)(CpuKernelTable&)) const {
    hwy::GetChosenTarget().Update(GetParam());
    CpuKernelTable table;
    add(table);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    return table;
  }
};

#define RIDGELINE_ON_EVERY_TARGET(Suite)                                         \
  INSTANTIATE_TEST_SUITE_P(Targets, Suite, testing::ValuesIn(CompiledTargets()), \
                           [](const auto& info) { return std::string(hwy::TargetName(info.param)); })

// One rounding to `dtype` away from `expected`, give or take `relative` of it and `absolute`.
inline void ExpectClose(const std::vector<float>& actual, const std::vector<double>& expected, DType dtype,
                        double absolute, double relative = 1e-6) {
  ASSERT_EQ(actual.size(), expected.size());
  if (dtype == DType::kBF16) relative += 1.0 / 256;
  if (dtype == DType::kF16) {
    relative += 1.0 / 1024;
    absolute += 0x1p-24;  // subnormal steps
  }
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i], relative * std::abs(expected[i]) + absolute)
        << "element " << i << " of " << DTypeName(dtype);
  }
}

inline std::vector<double> Doubles(const std::vector<float>& values) { return {values.begin(), values.end()}; }

// Normal numbers that `dtype` represents.
inline std::vector<float> RepresentableNormal(DType dtype, int64_t count, uint32_t seed, float scale = 1) {
  std::vector<float> values = NormalFloats(count, seed, scale);
  for (float& value : values) value = Rounded(value, dtype);
  return values;
}

// d f / d x by central differences.
inline double Slope(const std::function<double(double)>& f, double x, double h = 1e-5) {
  return (f(x + h) - f(x - h)) / (2 * h);
}

// Restores the number of threads.
class Threads {
 public:
  explicit Threads(int count) : before_(omp_get_max_threads()) { omp_set_num_threads(count); }
  ~Threads() { omp_set_num_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

// Runs what `record` records, with 1, 2 and 5 threads, and expects the same bytes in the tensors that it returns.
inline void ExpectSameForAnyThreads(const CpuKernelTable& table,
                                    const std::function<std::vector<Tensor>(OpRunner&)>& record) {
  std::vector<std::vector<std::byte>> first;
  for (const int count : {1, 2, 5}) {
    const Threads threads(count);
    OpRunner runner;
    const std::vector<Tensor> outputs = record(runner);
    runner.Run(table, {.step = 3, .learning_rate = 0.01, .seed = 7});
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (count == 1) {
        first.push_back(runner.Bytes(outputs[i]));
      } else {
        EXPECT_EQ(first[i], runner.Bytes(outputs[i])) << "output " << i << " with " << count << " threads";
      }
    }
  }
}

}  // namespace ridgeline
