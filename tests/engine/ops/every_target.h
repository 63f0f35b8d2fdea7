// Runs tests of kernels on every device: on each instruction set that the vectorised ones are compiled for and this CPU
// has, and on a machine with CUDA: the emulated one with several orders of its threads, or a GPU.
#pragma once

#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <ostream>
#include <string>
#include <vector>

// clang-format off: before Highway
#include "engine/ops/cpu/simd_targets.h"
// clang-format on
#include <hwy/targets.h>

#include "engine/device/cpu/kernel.h"
#include "engine/ops/cpu/kernels.h"
#include "tests/engine/ops/op_runner.h"

#ifdef RIDGELINE_CUDA_TESTS
#include "engine/ops/cuda/kernels.h"
#endif

namespace ridgeline::engine {

inline std::vector<int64_t> CompiledTargets() {
  std::vector<int64_t> targets;
  const int64_t able = hwy::SupportedTargets() | HWY_STATIC_TARGET;
  for (int64_t bits = HWY_TARGETS & able; bits != 0; bits &= bits - 1) targets.push_back(bits & -bits);
  return targets;
}

// The place where kernels run.
struct Target {
  std::string name;
  int64_t highway = 0;  // 0: the best that this CPU has
  bool cuda = false;
  uint64_t seed = 0;  // of the emulated machine's orders

  friend std::ostream& operator<<(std::ostream& out, const Target& target) { return out << target.name; }
};
inline std::vector<Target> InstructionSets() {
  std::vector<Target> targets;
  for (const int64_t highway : CompiledTargets()) targets.push_back({hwy::TargetName(highway), highway});
  return targets;
}
inline std::vector<Target> WithCuda(std::vector<Target> targets) {
#ifdef RIDGELINE_CUDA_TESTS
  // A GPU chooses its own order.
  for (uint64_t seed = 0; seed < (kEmulatedMachine ? 3 : 1); ++seed) {
    targets.push_back({"CudaSeed" + std::to_string(seed), 0, true, seed});
  }
#endif
  return targets;
}

// The functions that register an op family's kernels on each device.
struct OpFamily {
  void (*cpu)(CpuKernelTable&);
#ifdef RIDGELINE_CUDA_TESTS
  void (*cuda)(CudaKernelTable&);
#endif
};
#ifdef RIDGELINE_CUDA_TESTS
#define RIDGELINE_FAMILY(Name) \
  OpFamily { Add##Name##Cpu, Add##Name##Cuda }
#else
#define RIDGELINE_FAMILY(Name) \
  OpFamily { Add##Name##Cpu }
#endif

// The parameter says where kernels run; Kernels returns the families' kernels there.
class EveryTarget : public testing::TestWithParam<Target> {
 protected:
  OpKernels Kernels(std::initializer_list<OpFamily> families) {
#ifdef RIDGELINE_CUDA_TESTS
    if (GetParam().cuda) {
      cuda_machine::ResetMachine({.seed = GetParam().seed});
      // Uses as much workspace as the fake of cuBLASLt; a real one's would be copied with every slab.
      RecordedFor() = {.compute_capability = CapabilityHere(), .product_workspace_bytes = int64_t{1} << 20};
      CudaKernelTable table;
      for (const OpFamily& family : families) family.cuda(table);
      return table;
    }
#endif
    if (GetParam().highway != 0) hwy::GetChosenTarget().Update(GetParam().highway);
    CpuKernelTable table;
    for (const OpFamily& family : families) family.cpu(table);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    return table;
  }
  ~EveryTarget() override { RecordedFor() = {}; }
};

#define RIDGELINE_ON_TARGETS(Name, Suite, targets) \
  INSTANTIATE_TEST_SUITE_P(Name, Suite, testing::ValuesIn(targets), [](const auto& info) { return info.param.name; })
// The sets of targets: each instruction set of the CPU and CUDA; each instruction set; the CPU as it is and CUDA.
#define RIDGELINE_ON_EVERY_TARGET(Suite) RIDGELINE_ON_TARGETS(Targets, Suite, WithCuda(InstructionSets()))
#define RIDGELINE_ON_EVERY_INSTRUCTION_SET(Suite) RIDGELINE_ON_TARGETS(Targets, Suite, InstructionSets())
#define RIDGELINE_ON_EVERY_DEVICE(Suite) RIDGELINE_ON_TARGETS(Devices, Suite, WithCuda({{"Cpu"}}))

// Checks for one rounding to `dtype` from `expected`, plus `relative` of it and `absolute`.
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

// Normal random numbers that `dtype` represents.
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

// Runs the ops that `record` records with 1, 2 and 5 threads (on the emulated machine with three orders), and expects
// the same bytes in the tensors that it returns.
inline void ExpectSameForAnyThreads(const OpKernels& kernels,
                                    const std::function<std::vector<Tensor>(OpRunner&)>& record) {
  std::vector<std::vector<std::byte>> first;
  for (const int count : {1, 2, 5}) {
    const Threads threads(count);
    OpRunner runner;
    const std::vector<Tensor> outputs = record(runner);
    runner.Run(kernels, {.step = 3, .learning_rate = 0.01, .seed = 7});
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (count == 1) {
        first.push_back(runner.Bytes(outputs[i]));
      } else {
        EXPECT_EQ(first[i], runner.Bytes(outputs[i])) << "output " << i << " with " << count << " threads";
      }
    }
  }
}

}  // namespace ridgeline::engine
