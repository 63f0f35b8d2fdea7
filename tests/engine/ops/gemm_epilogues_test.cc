// Which passes beside products cuBLASLt does in its products, if measurements show that to be faster.
#ifdef RIDGELINE_CUDA_ON_CPU
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "cuda_on_cpu/cublaslt.h"
#include "cuda_on_cpu/machine.h"
#include "engine/device/algorithm_file.h"
#include "engine/device/cuda/executor.h"
#include "engine/ops/cuda/gemm_epilogue.h"
#include "engine/ops/cuda/kernels.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/gemm.h"
#include "tests/base/temp_dir.h"
#include "tests/engine/device/fake_libraries.h"
#include "tests/engine/ops/op_runner.h"

namespace ridgeline::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Use = AlgorithmFile::Use;

constexpr int64_t kTokens = 40, kInputs = 24, kOutputs = 32;

// The backward pass of two linear layers with GELU between them, as Linears records it, for weights in the layout
// (inputs, outputs) and in the other one.
struct Backwards {
  Trace trace{DeviceDescription{90, 1 << 20}};
  Tensor dy, x, before_gelu, weight, dx, dweight, dbias, dbias_of_before, dweight_of_before, again;
  Layout layout;

  explicit Backwards(bool in_out, DType dtype = DType::kBF16, DType gradients = DType::kF32) {
    dy = Make(dtype, kTokens, kOutputs);
    x = Make(dtype, kTokens, kInputs);
    before_gelu = Make(dtype, kTokens, kInputs);
    weight = in_out ? Make(dtype, kInputs, kOutputs) : Make(dtype, kOutputs, kInputs);
    dx = Make(dtype, kTokens, kInputs);
    dbias = Make(gradients, 1, kOutputs);
    dweight = in_out ? Make(gradients, kInputs, kOutputs) : Make(gradients, kOutputs, kInputs);
    dbias_of_before = Make(gradients, 1, kInputs);
    dweight_of_before = Make(gradients, kInputs, kInputs);
    Gemm(trace, dy, Trans::kNo, weight, in_out ? Trans::kYes : Trans::kNo, dx);
    ColumnSum(trace, dy, dbias, false);
    Gemm(trace, in_out ? x : dy, Trans::kYes, in_out ? dy : x, Trans::kNo, dweight);
    GeluBackward(trace, dx, before_gelu, dx);
    ColumnSum(trace, dx, dbias_of_before, false);
    Gemm(trace, in_out ? x : dx, Trans::kYes, in_out ? dx : x, Trans::kNo, dweight_of_before);
  }
  Tensor Make(DType dtype, int64_t rows, int64_t cols) { return trace.Persistent(dtype, rows, cols, Category::kData); }
  std::vector<Tensor> results() const { return {dx, dbias, dweight, dbias_of_before, dweight_of_before}; }
};

// The numbers of the results, and the passes done in products.
struct EpilogueOutcome {
  std::vector<std::vector<float>> numbers;
  std::set<std::string> taken;
  int64_t measured = 0;  // runs of products
};

class GemmEpiloguesOnCuda : public ::testing::Test {
 protected:
  GemmEpiloguesOnCuda() { cuda_on_cpu::ResetMachine(); }
  ~GemmEpiloguesOnCuda() override { cuda_on_cpu::ResetCublasLt(); }

  // An epilogue takes this much longer than its product, which takes 20 s. The pass that it replaces takes almost
  // nothing on this machine's clock.
  static void Epilogues(double longer_ms, bool has = true) {
    cuda_on_cpu::ResetCublasLt({.algorithm_ms = {20'000}, .epilogue_ms = longer_ms, .has_epilogues = has});
  }
  std::unique_ptr<AlgorithmFile> Open(Use use = Use::kMeasure) const {
    return std::make_unique<AlgorithmFile>(dir_ / "cublaslt.json", "H200", use);
  }
  static EpilogueOutcome Run(AlgorithmFile* algorithms, Backwards program, bool graph = true, bool timed = false,
                             const CublasLt& (*library)() = FakeCublasLt) {
    program.layout = PlanLayout(program.trace);
    CudaKernelTable kernels;
    AddGemmCuda(kernels);
    AddElementwiseCuda(kernels);
    const CudaLibraries libraries = {.cublaslt = library, .cudnn = nullptr};
    const int64_t before = cuda_on_cpu::CublasLtProductsRun();
    CudaExecutor executor(program.trace, program.layout, kernels, {0, &libraries, graph, algorithms, GemmEpilogue});
    const auto read = [&](const Tensor& t) {
      if (t.dtype == DType::kF32) return executor.Read<float>(t, 0, t.elements());
      std::vector<float> values;
      for (const uint16_t bits : executor.Read<uint16_t>(t, 0, t.elements())) values.push_back(Bf16Value(bits));
      return values;
    };
    EpilogueOutcome outcome;
    outcome.measured = cuda_on_cpu::CublasLtProductsRun() - before;
    uint32_t seed = 0;
    for (const Tensor& t : {program.dy, program.x, program.before_gelu, program.weight}) {
      std::vector<uint16_t> bits;
      for (const float value : NormalFloats(t.elements(), ++seed)) bits.push_back(Bf16Bits(value));
      executor.Write<uint16_t>(t, 0, bits);
    }
    if (timed) executor.EnableTiming();
    for (int64_t step = 1; step <= 3; ++step) executor.Step({.step = step});
    for (const Tensor& t : program.results()) outcome.numbers.push_back(read(t));
    if (algorithms != nullptr) outcome.taken = algorithms->taken();
    return outcome;
  }
  // The same numbers except for rounding, once or twice, and for the order of sums.
  static void ExpectClose(const EpilogueOutcome& a, const EpilogueOutcome& b) {
    ASSERT_EQ(a.numbers.size(), b.numbers.size());
    for (size_t r = 0; r < a.numbers.size(); ++r) {
      ASSERT_EQ(a.numbers[r].size(), b.numbers[r].size());
      for (size_t i = 0; i < a.numbers[r].size(); ++i) {
        ASSERT_NEAR(a.numbers[r][i], b.numbers[r][i], 0.2 + 0.02F * std::abs(b.numbers[r][i])) << r << " " << i;
      }
    }
  }

  TempDir dir_;
};

TEST_F(GemmEpiloguesOnCuda, AreTakenWhereTheyAreFasterAndKept) {
  for (const bool in_out : {false, true}) {
    for (const DType gradients : {DType::kF32, DType::kBF16}) {
      SCOPED_TRACE(testing::Message() << in_out << " " << DTypeName(gradients));
      const Backwards program(in_out, DType::kBF16, gradients);
      Epilogues(0);
      const EpilogueOutcome plain = Run(nullptr, program);
      EXPECT_THAT(plain.taken, IsEmpty());
      EXPECT_EQ(plain.measured, 0);
      std::filesystem::remove(dir_ / "cublaslt.json");
      Epilogues(-5'000);
      const EpilogueOutcome fused = Run(Open().get(), program);
      EXPECT_THAT(fused.taken, ElementsAre("column_sum", "gelu_backward"));
      EXPECT_GT(fused.measured, 0);
      ExpectClose(fused, plain);
      EXPECT_NE(fused.numbers, plain.numbers) << "an epilogue rounds once what two passes round twice";
      // From the file, whatever the times are now: without measuring, and the same to the bit, however the step is
      // queued.
      Epilogues(5'000);
      for (const Use use : {Use::kMeasure, Use::kTakeOnly}) {
        for (const bool graph : {false, true}) {
          const EpilogueOutcome again = Run(Open(use).get(), program, graph);
          EXPECT_EQ(again.measured, 0);
          EXPECT_EQ(again.taken, fused.taken);
          EXPECT_EQ(again.numbers, fused.numbers);
        }
      }
      EXPECT_EQ(Run(Open().get(), program, true, true).numbers, fused.numbers) << "each call timed";
    }
  }
}

TEST_F(GemmEpiloguesOnCuda, AreLeftWhereTheyAreNotFaster) {
  const Backwards program(true);
  Epilogues(0);
  const EpilogueOutcome plain = Run(nullptr, program);
  for (const double longer_ms : {5'000.0, 0.0}) {
    std::filesystem::remove(dir_ / "cublaslt.json");
    Epilogues(longer_ms);
    EXPECT_EQ(Run(Open().get(), program).numbers, plain.numbers);
    Epilogues(-5'000);
    const EpilogueOutcome again = Run(Open().get(), program);
    EXPECT_EQ(again.measured, 0) << "the file also keeps that two calls are faster";
    EXPECT_EQ(again.numbers, plain.numbers);
    EXPECT_THAT(again.taken, IsEmpty());
  }
}

TEST_F(GemmEpiloguesOnCuda, AreLeftWhereNothingIsMeasuredOrTheLibraryHasNone) {
  const Backwards program(false);
  Epilogues(-5'000);
  const EpilogueOutcome plain = Run(nullptr, program);
  EXPECT_EQ(Run(Open(Use::kTakeOnly).get(), program).numbers, plain.numbers);
  Epilogues(-5'000, false);
  const EpilogueOutcome refused = Run(Open().get(), program);
  EXPECT_EQ(refused.numbers, plain.numbers);
  EXPECT_THAT(refused.taken, IsEmpty());
}

// If another call stands between two calls, or a result is added to, they stay separate.
TEST_F(GemmEpiloguesOnCuda, AreLeftWhereTheyWouldBeOtherNumbers) {
  Epilogues(-5'000);
  const auto taken =
      [&](const std::function<void(Trace & trace, const std::function<Tensor(int64_t, int64_t)>& make)>& record) {
        Backwards program(true, DType::kF32);
        program.trace = Trace(DeviceDescription{90, 1 << 20});
        record(program.trace, [&](int64_t rows, int64_t cols) { return program.Make(DType::kF32, rows, cols); });
        const Layout layout = PlanLayout(program.trace);
        CudaKernelTable kernels;
        AddGemmCuda(kernels);
        AddElementwiseCuda(kernels);
        const CudaLibraries libraries = FakeLibraries();
        const auto file = Open();
        const CudaExecutor executor(program.trace, layout, kernels, {0, &libraries, true, file.get(), GemmEpilogue});
        return file->taken();
      };
  EXPECT_THAT(taken([](Trace& trace, const auto& make) {
                const Tensor c = make(16, 16), x = make(16, 16);
                Gemm(trace, make(16, 8), Trans::kNo, make(8, 16), Trans::kNo, c);
                GeluBackward(trace, c, x, c);
              }),
              ElementsAre("gelu_backward"));
  EXPECT_THAT(taken([](Trace& trace, const auto& make) {
                const Tensor c = make(16, 16), x = make(16, 16);
                Gemm(trace, make(16, 8), Trans::kNo, make(8, 16), Trans::kNo, c);
                Fill(trace, x, 1);
                GeluBackward(trace, c, x, c);
              }),
              IsEmpty())
      << "the epilogue's input is made between them";
  EXPECT_THAT(taken([](Trace& trace, const auto& make) {
                const Tensor c = make(16, 16), x = make(16, 16);
                Gemm(trace, make(16, 8), Trans::kNo, make(8, 16), Trans::kNo, c);
                Gelu(trace, c, make(16, 16));
                GeluBackward(trace, c, x, c);
              }),
              IsEmpty())
      << "the product is read between them";
  EXPECT_THAT(taken([](Trace& trace, const auto& make) {
                const Tensor c = make(16, 16), x = make(16, 16);
                Gemm(trace, make(16, 8), Trans::kNo, make(8, 16), Trans::kNo, c);
                GeluBackward(trace, c, x, make(16, 16));
              }),
              IsEmpty())
      << "the product is kept";
  EXPECT_THAT(taken([](Trace& trace, const auto& make) {
                const Tensor c = make(16, 12), x = make(16, 12);
                Gemm(trace, make(16, 8), Trans::kNo, make(8, 12), Trans::kNo, c);
                GeluBackward(trace, c, x, c);
              }),
              IsEmpty())
      << "rows that are not a multiple of 8";
  for (const bool accumulate : {false, true}) {
    EXPECT_THAT(taken([&](Trace& trace, const auto& make) {
                  const Tensor a = make(24, 16), b = make(24, 8);
                  ColumnSum(trace, a, make(1, 16), accumulate);
                  Gemm(trace, a, Trans::kYes, b, Trans::kNo, make(16, 8), true);
                }).size(),
                accumulate ? 0U : 1U);
  }
  EXPECT_THAT(taken([](Trace& trace, const auto& make) {
                const Tensor a = make(16, 24), b = make(24, 8);
                ColumnSum(trace, a, make(1, 24), false);
                Gemm(trace, a, Trans::kNo, b, Trans::kNo, make(16, 8));
              }),
              IsEmpty())
      << "columns that the product does not sum over";
}

// The result's place in memory belongs to another tensor while the product runs.
TEST_F(GemmEpiloguesOnCuda, AreLeftWhereTheirResultHasNoPlaceYet) {
  Epilogues(-5'000);
  Trace trace(DeviceDescription{90, 1 << 20});
  const auto make = [&](int64_t rows, int64_t cols) {
    return trace.Temporary(DType::kF32, rows, cols, Category::kActivations);
  };
  const Tensor a = make(24, 16), b = make(24, 8), c = make(16, 8), sum = make(1, 16);
  for (const Tensor& t : {a, b}) Fill(trace, t, 1);
  Gemm(trace, a, Trans::kYes, b, Trans::kNo, c);
  ColumnSum(trace, a, sum, false);
  const Layout layout = PlanLayout(trace);
  CudaKernelTable kernels;
  AddGemmCuda(kernels);
  AddElementwiseCuda(kernels);
  const CudaLibraries libraries = FakeLibraries();
  const auto file = Open();
  const CudaExecutor executor(trace, layout, kernels, {0, &libraries, true, file.get(), GemmEpilogue});
  EXPECT_THAT(file->taken(), IsEmpty());
}

TEST_F(GemmEpiloguesOnCuda, SayWhichCallFailedAndGiveEverythingBack) {
  const Backwards program(true);
  Epilogues(-5'000);
  LibraryWatch& watch = ThisWatch();
  for (int call = 1;; ++call) {
    std::filesystem::remove(dir_ / "cublaslt.json");
    watch = {.fails_at = call};
    bool failed = false;
    try {
      Run(Open().get(), program, true, false, WatchedCublasLt);
    } catch (const Error& error) {
      failed = true;
      EXPECT_THAT(error.message(), HasSubstr("cuBLASLt: "));
      EXPECT_EQ(error.kind(), ErrorKind::kInfrastructure);
    }
    EXPECT_EQ(watch.alive, 0) << watch.failed;
    EXPECT_EQ(cuda_on_cpu::AllocatedBytes(), 0U) << watch.failed;
    EXPECT_EQ(failed, !watch.failed.empty()) << watch.failed;
    if (watch.failed.empty()) break;
  }
}

}  // namespace
}  // namespace ridgeline::engine
#endif
