#include "engine/device/cuda/executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <numeric>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/device/cuda/order.h"
#include "engine/ops/cuda/kernels.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/norm.h"
#include "engine/ops/optimizer.h"
#include "tests/base/temp_dir.h"
#include "tests/engine/device/cuda_machine.h"

namespace ridgeline::engine {
namespace {

using testing::HasSubstr;

CudaKernelTable ExecutorKernels() {
  CudaKernelTable table;
  AddNormCuda(table);
  AddOptimizerCuda(table);
  return table;
}

// Normalizes x by a weight that Adam then changes, so that a step's results depend on earlier steps and on its inputs.
struct Small {
  static constexpr int64_t kRows = 5, kCols = 70;
  Trace trace;
  Tensor x, weight, gradient, m, v, y, rstd;
  Layout layout;

  Small() {
    const auto make = [&](int64_t rows, int64_t cols) {
      return trace.Persistent(DType::kF32, rows, cols, Category::kData);
    };
    x = make(kRows, kCols);
    y = make(kRows, kCols);
    weight = make(1, kCols);
    gradient = make(1, kCols);
    m = make(1, kCols);
    v = make(1, kCols);
    rstd = make(1, kRows);
    RmsNorm(trace, x, weight, y, rstd, 1e-5);
    Adam(trace, weight, {}, m, v, gradient, {}, {});
    layout = PlanLayout(trace);
  }
  void Begin(Executor& executor) const {
    std::vector<float> values(kRows * kCols);
    std::iota(values.begin(), values.end(), -100.0F);
    executor.Write<float>(x, 0, values);
    executor.Write<float>(weight, 0, std::vector<float>(kCols, 1));
    executor.Write<float>(gradient, 0, std::vector<float>(values.begin(), values.begin() + kCols));
  }
  std::pair<std::vector<float>, std::vector<float>> Results(const Executor& executor) const {
    return {executor.Read<float>(y, 0, kRows * kCols), executor.Read<float>(weight, 0, kCols)};
  }
};
StepInputs InputsOf(int64_t step) { return {.step = step, .learning_rate = 0.01 / static_cast<double>(step)}; }

// What an Error says, and its kind.
std::pair<ErrorKind, std::string> Refusal(const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& error) {
    return {error.kind(), error.what()};
  }
  ADD_FAILURE() << "nothing was refused";
  return {};
}

TEST(CudaExecutor, ReadsWhatWasWrittenByTheElement) {
  cuda_machine::ResetMachine();
  Trace trace;
  const Tensor x = trace.Persistent(DType::kF32, 2, 3, Category::kData);
  const Tensor large = trace.Persistent(DType::kF32, 1, 5'000'001, Category::kData);  // more than is staged at once
  const Layout layout = PlanLayout(trace);
  CudaExecutor executor(trace, layout, {});
  EXPECT_EQ(executor.Read<float>(x, 0, 6), std::vector<float>(6)) << "unwritten memory is zero, as on the CPU";
  executor.Write<float>(x, 0, std::array{0.F, 1.F, 2.F, 3.F, 4.F, 5.F});
  executor.Write<float>(x.Rows(1, 1), 2, std::array{50.F});
  EXPECT_EQ(executor.Read<float>(x, 0, 6), (std::vector{0.F, 1.F, 2.F, 3.F, 4.F, 50.F}));
  EXPECT_EQ(executor.Element<float>(x.Cols(1, 1)), 1.F);
  std::vector<float> values(5'000'001);
  std::iota(values.begin(), values.end(), 0.0F);
  executor.Write<float>(large, 0, values);
  EXPECT_EQ(executor.Read<float>(large, 0, 5'000'001), values);
}

TEST(CudaExecutor, AGraphGivesTheBitsOfStepsThatAreQueuedCallByCall) {
  const Small small;
  const CudaKernelTable kernels = ExecutorKernels();
  std::vector<std::pair<std::vector<float>, std::vector<float>>> first;
  for (const uint64_t seed : {0, 1, 2}) {
    for (const bool graph : {false, true}) {
      cuda_machine::ResetMachine({.seed = seed});
      CudaExecutor executor(small.trace, small.layout, kernels, {.graph = graph});
      small.Begin(executor);
      for (int64_t step = 1; step <= 4; ++step) {
        executor.Step(InputsOf(step));
        const auto results = small.Results(executor);
        if (first.size() < static_cast<size_t>(step)) first.push_back(results);
        EXPECT_EQ(results, first[static_cast<size_t>(step - 1)]) << "step " << step << ", seed " << seed;
      }
    }
  }
  EXPECT_NE(first[0], first[1]);
}

TEST(CudaExecutor, AReplayedStepReadsItsOwnInputs) {
  const Small small;
  const CudaKernelTable kernels = ExecutorKernels();
  const auto weight_after = [&](double last_rate) {
    cuda_machine::ResetMachine();
    CudaExecutor executor(small.trace, small.layout, kernels);
    small.Begin(executor);
    for (int64_t step = 1; step <= 3; ++step) executor.Step(InputsOf(step));
    const auto before = small.Results(executor).second;
    executor.Step({.step = 4, .learning_rate = last_rate});
    return std::pair(before, small.Results(executor).second);
  };
  const auto [still_before, still] = weight_after(0);
  EXPECT_EQ(still, still_before);
  const auto [before, moved] = weight_after(0.1);
  EXPECT_EQ(before, still_before);
  EXPECT_NE(moved, before);
}

// Three calls of one op: the first two are joined, and the third touches what one of them changes.
TEST(CallsTogether, EndBeforeOneThatTouchesWhatAnotherChanges) {
  enum Third { kReadsWhatTheFirstWrote, kWritesWhatTheFirstRead, kWritesWhatTheSecondWrote, kTouchesNothing };
  for (const Third third :
       {kReadsWhatTheFirstWrote, kWritesWhatTheFirstRead, kWritesWhatTheSecondWrote, kTouchesNothing}) {
    Trace trace;
    const auto make = [&](int64_t rows) { return trace.Persistent(DType::kF32, rows, 8, Category::kData); };
    const Tensor x[3] = {make(2), make(2), make(2)};
    const Tensor y[3] = {make(2), make(2), make(2)};
    const Tensor weight = make(1);
    const auto norm = [&](const Tensor& from, const Tensor& to) {
      RmsNorm(trace, from, weight, to, trace.Persistent(DType::kF32, 1, 2, Category::kData), 1e-5);
    };
    norm(x[0], y[0]);
    norm(x[1], y[1]);
    norm(third == kReadsWhatTheFirstWrote ? y[0] : x[2], third == kWritesWhatTheFirstRead     ? x[0]
                                                         : third == kWritesWhatTheSecondWrote ? y[1]
                                                                                              : y[2]);
    EXPECT_EQ(CountTogether(trace, PlanLayout(trace), 0), third == kTouchesNothing ? 3U : 2U) << third;
  }
}

// A call waits for the last call beside it whose bytes it changes, or that changes its own, and only once.
TEST(SecondStream, IsWaitedForBeforeWhatTouchesItsBytes) {
  Trace trace;
  Tensor t[5];
  for (Tensor& tensor : t) tensor = trace.Persistent(DType::kF32, 1, 8, Category::kData);
  for (const auto& [from, to] : {std::pair{0, 1}, {2, 3}, {2, 4}, {1, 2}, {2, 1}}) {
    DropoutAdd(trace, t[from], t[from], t[to], 0, {});  // reads the one, changes the other
  }
  const Layout layout = PlanLayout(trace);
  const auto bytes = [&](size_t call) {
    SlabBytes touched(trace, layout);
    touched.Add(trace.calls()[call]);
    return touched;
  };
  SecondStream order;
  EXPECT_EQ(order.WaitOf(bytes(0)), std::nullopt) << "nothing runs beside it";
  EXPECT_EQ(order.Beside(bytes(0)), 0U);
  EXPECT_EQ(order.Beside(bytes(1)), 1U);
  EXPECT_EQ(order.WaitOf(bytes(2)), std::nullopt) << "both only read it";
  EXPECT_EQ(order.WaitOf(bytes(3)), 1U) << "reads what the first changes, and changes what the second reads";
  EXPECT_EQ(order.WaitOf(bytes(3)), std::nullopt) << "an earlier call has waited";
  EXPECT_EQ(order.Beside(bytes(0)), 2U);
  EXPECT_EQ(order.WaitOf(bytes(4)), 2U) << "both change it";
}

TEST(CudaExecutor, RefusesAnOpThatItHasNoKernelFor) {
  cuda_machine::ResetMachine();
  const Small small;
  EXPECT_EQ(Refusal([&] { const CudaExecutor executor(small.trace, small.layout, {}); }),
            std::pair(ErrorKind::kInternal, std::string("the op rms_norm has no CUDA kernel")));
}

TEST(CudaExecutor, TimesEveryCallWhereAsked) {
  cuda_machine::ResetMachine();
  const Small small;
  const CudaKernelTable kernels = ExecutorKernels();
  CudaExecutor executor(small.trace, small.layout, kernels);
  EXPECT_TRUE(executor.call_ns().empty());
  for (int64_t step = 1; step <= 2; ++step) executor.Step(InputsOf(step));
  executor.EnableTiming();
  executor.Step(InputsOf(3));
  ASSERT_EQ(executor.call_ns().size(), 2U);
  for (const int64_t ns : executor.call_ns()) EXPECT_GT(ns, 0);
}

#ifdef RIDGELINE_CUDA_ON_CPU

TEST(CudaExecutor, AStepIsQueuedAndNotWaitedFor) {
  cuda_machine::ResetMachine();
  const Small small;
  const CudaKernelTable kernels = ExecutorKernels();
  CudaExecutor executor(small.trace, small.layout, kernels);
  small.Begin(executor);
  for (int64_t step = 1; step <= 3; ++step) executor.Step(InputsOf(step));
  EXPECT_EQ(cuda_machine::GridsRun(), 0);
  small.Results(executor);
  EXPECT_GE(cuda_machine::GridsRun(), 6);
}

TEST(CudaExecutor, AGraphKeepsThePrioritiesOfItsStreams) {
  cuda_machine::ResetMachine();
  const Small small;
  const CudaKernelTable kernels = ExecutorKernels();
  CudaExecutor executor(small.trace, small.layout, kernels);
  for (int64_t step = 1; step <= 2; ++step) executor.Step(InputsOf(step));
  EXPECT_TRUE(cuda_machine::GraphKeepsPriorities());
}

TEST(CudaExecutor, MeasuringLeavesNothingInTheSlab) {
  cuda_machine::ResetMachine();
  const TempDir dir;
  const Small small;
  const CudaKernelTable kernels = ExecutorKernels();
  AlgorithmFile algorithms(dir / "algorithms.json", "here", AlgorithmFile::Use::kMeasure);
  CudaExecutor executor(small.trace, small.layout, kernels, {.algorithms = &algorithms});
  EXPECT_EQ(executor.Read<float>(small.m, 0, Small::kCols), std::vector<float>(Small::kCols));
  executor.Write<float>(small.m, 0, std::vector<float>(Small::kCols, 1));
  executor.Clear();
  EXPECT_EQ(executor.Read<float>(small.m, 0, Small::kCols), std::vector<float>(Small::kCols));
}

TEST(CudaExecutor, TakesThePlansBytesAndGivesAllBack) {
  cuda_machine::ResetMachine();
  const Small small;
  const CudaKernelTable kernels = ExecutorKernels();
  {
    const CudaExecutor executor(small.trace, small.layout, kernels);
    EXPECT_EQ(executor.slab_bytes(), small.layout.slab_bytes);
    const auto slab = static_cast<size_t>(small.layout.slab_bytes);
    EXPECT_GE(cuda_machine::AllocatedBytes(), slab);
    EXPECT_LT(cuda_machine::AllocatedBytes(), slab + 512) << "cudaMalloc rounds one allocation";
    const auto beside = executor.Beside(small.trace, small.layout);
    EXPECT_GE(cuda_machine::AllocatedBytes(), 2 * slab);
  }
  EXPECT_EQ(cuda_machine::AllocatedBytes(), 0U);
  EXPECT_EQ(cuda_machine::OpenHandles(), 0);
}

TEST(CudaExecutor, ASlabThatDoesNotFitIsRefusedWithItsBytes) {
  cuda_machine::ResetMachine({.device_bytes = 1 << 20});
  Trace trace;
  trace.Persistent(DType::kF32, 1000, 1000, Category::kData);
  trace.Inputs();
  const Layout layout = PlanLayout(trace);
  const auto [kind, words] = Refusal([&] { const CudaExecutor executor(trace, layout, {}); });
  EXPECT_EQ(kind, ErrorKind::kOutOfMemory);
  EXPECT_THAT(words, HasSubstr("bytes), and 1.05 MB (1048576 bytes) of the GPU's 1.05 MB are free"));
  EXPECT_THAT(words, HasSubstr(std::to_string(layout.slab_bytes)));
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST(CudaExecutor, MultipliesWhatItsGenerationDoes) {
  Trace trace;
  trace.Inputs();
  const Layout layout = PlanLayout(trace);
  const struct {
    int major, minor;
    bool fp8, blocks;
  } generations[] = {{8, 0, false, false}, {8, 9, true, false}, {9, 0, true, false}, {10, 0, true, true}};
  for (const auto& generation : generations) {
    cuda_machine::ResetMachine({.major = generation.major, .minor = generation.minor});
    const CudaExecutor executor(trace, layout, {});
    for (const MathFormat format : {MathFormat::kF32, MathFormat::kTF32, MathFormat::kBF16, MathFormat::kF16}) {
      EXPECT_TRUE(executor.Multiplies(format));
    }
    EXPECT_EQ(executor.Multiplies(MathFormat::kFp8), generation.fp8) << generation.major << "." << generation.minor;
    for (const MathFormat format : {MathFormat::kMxfp8, MathFormat::kFp4}) {
      EXPECT_EQ(executor.Multiplies(format), generation.blocks) << generation.major << "." << generation.minor;
    }
  }
}

// Two ops with kernels of the tests.
struct OneOperand {
  struct {
    Tensor x;
  } reads;
};
const Op<OneOperand> kFaulty{OpDef::Pass("faulty", BesideBudget("a test's"))};
struct Faulty {
  Trace trace;
  Layout layout;
  Tensor x = trace.Persistent(DType::kF32, 1, 4, Category::kData);
  explicit Faulty() {
    trace.Call(kFaulty, {{x}});
    layout = PlanLayout(trace);
  }
};

TEST(CudaExecutor, ADeviceErrorIsReportedWhereTheHostWaits) {
  cuda_machine::ResetMachine();
  const Faulty faulty;
  const CudaKernelTable kernels = {{&kFaulty, {[](const OpCall&, const CudaRun& run, KernelState*) {
                                      cuda_machine::Enqueue(run.stream, [] { return cudaErrorIllegalAddress; });
                                    }}}};
  {
    CudaExecutor executor(faulty.trace, faulty.layout, kernels);
    executor.Step({});
    const auto [kind, words] = Refusal([&] { executor.Element<float>(faulty.x); });
    EXPECT_EQ(kind, ErrorKind::kInternal);
    EXPECT_THAT(words, HasSubstr("(cudaErrorIllegalAddress); the GPU computes nothing more for this process"));
  }
  EXPECT_EQ(cuda_machine::OpenHandles(), 0);
}

TEST(CudaExecutor, AStepThatCannotBeRecordedIsToldAndLeavesNothing) {
  cuda_machine::ResetMachine();
  const Faulty faulty;
  const CudaKernelTable kernels = {{&kFaulty, {[](const OpCall&, const CudaRun& run, KernelState*) {
                                      void* memory = nullptr;  // a step must not allocate this
                                      CheckCuda(cudaMalloc(&memory, 16), "cudaMalloc");
                                      CheckCuda(cudaMemsetAsync(run.slab, 0, 4, run.stream), "cudaMemsetAsync");
                                      CheckCuda(cudaFree(memory), "cudaFree");
                                    }}}};
  {
    CudaExecutor executor(faulty.trace, faulty.layout, kernels);
    executor.Step({});
    for (int again = 0; again < 2; ++again) {
      EXPECT_THAT(Refusal([&] { executor.Step({}); }).second,
                  HasSubstr("cudaMalloc: cudaErrorStreamCaptureUnsupported"));
    }
    EXPECT_EQ(executor.Element<float>(faulty.x), 0);
  }
  EXPECT_EQ(cuda_machine::AllocatedBytes(), 0U);
  EXPECT_EQ(cuda_machine::OpenHandles(), 0);
}

// NCCL's threads allocate memory meanwhile, and so do a checkpoint's.
TEST(CudaExecutor, OtherThreadsMayTakeMemoryWhileAStepIsRecorded) {
  cuda_machine::ResetMachine();
  const Faulty faulty;
  const CudaKernelTable kernels = {{&kFaulty, {[](const OpCall&, const CudaRun& run, KernelState*) {
                                      cudaError_t other = cudaErrorUnknown;
                                      std::thread([&] {
                                        void* memory = nullptr;
                                        other = cudaMalloc(&memory, 16);
                                        cudaFree(memory);
                                      }).join();
                                      CheckCuda(other, "another thread's cudaMalloc");
                                      CheckCuda(cudaMemsetAsync(run.slab, 0, 4, run.stream), "cudaMemsetAsync");
                                    }}}};
  CudaExecutor executor(faulty.trace, faulty.layout, kernels);
  for (int step = 0; step < 2; ++step) EXPECT_NO_THROW(executor.Step({}));
}

// Each call of the runtime fails once, from the first to the last of a run with all of an executor's parts.
TEST(CudaExecutor, EveryCallThatFailsIsAnErrorAndNothingIsLeft) {
  const Small small;
  const CudaKernelTable kernels = ExecutorKernels();
  const auto run = [&] {
    CudaExecutor executor(small.trace, small.layout, kernels);
    small.Begin(executor);
    for (int64_t step = 1; step <= 2; ++step) executor.Step(InputsOf(step));
    small.Results(executor);
    executor.EnableTiming();
    executor.Step(InputsOf(3));
    return cuda_machine::CallsMade();
  };
  cuda_machine::ResetMachine();
  const int64_t calls = run();
  EXPECT_GT(calls, 40);
  for (const cudaError_t error : {cudaErrorMemoryAllocation, cudaErrorNotSupported}) {
    for (int64_t call = 1; call <= calls; ++call) {
      cuda_machine::ResetMachine();
      cuda_machine::FailCall(call, error);
      SCOPED_TRACE(testing::Message() << "call " << call << " of " << calls);
      EXPECT_EQ(Refusal(run).first,
                error == cudaErrorMemoryAllocation ? ErrorKind::kOutOfMemory : ErrorKind::kInternal);
      EXPECT_EQ(cuda_machine::AllocatedBytes(), 0U);
      EXPECT_EQ(cuda_machine::OpenHandles(), 0);
    }
  }
}

#endif

}  // namespace
}  // namespace ridgeline::engine
