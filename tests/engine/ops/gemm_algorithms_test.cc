// Which of cuBLASLt's algorithms a product uses: the first one named, or the fastest, measured once and kept.
#ifdef RIDGELINE_CUDA_ON_CPU
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "cuda_on_cpu/cublaslt.h"
#include "cuda_on_cpu/machine.h"
#include "engine/device/algorithm_file.h"
#include "engine/device/cuda/executor.h"
#include "engine/ops/cuda/kernels.h"
#include "engine/ops/gemm.h"
#include "engine/ops/quantize.h"
#include "tests/base/temp_dir.h"
#include "tests/engine/device/fake_libraries.h"
#include "tests/engine/ops/op_runner.h"

namespace ridgeline::engine {
namespace {

using ::testing::HasSubstr;
using Use = AlgorithmFile::Use;
using Bits = std::vector<float>;

constexpr int64_t kSize = 64;
constexpr int64_t kMeasured = 6;  // runs of an algorithm

// Two products of one shape, and one that adds to its result.
struct Products {
  Trace trace{DeviceDescription{90, 1 << 20}};
  Tensor a = Make(), b = Make(), first = Make(), second = Make(), added = Make();
  Layout layout;

  Products() {
    Gemm(trace, a, Trans::kNo, b, Trans::kYes, first);
    Gemm(trace, b, Trans::kNo, a, Trans::kYes, second);
    Gemm(trace, a, Trans::kNo, b, Trans::kYes, added, true);
    layout = PlanLayout(trace);
  }
  Tensor Make() { return trace.Persistent(DType::kF32, kSize, kSize, Category::kData); }
};

class GemmAlgorithmsOnCuda : public ::testing::Test {
 protected:
  GemmAlgorithmsOnCuda() {
    cuda_on_cpu::ResetMachine();
    Algorithms({30'000, 20'000, 10'000, 40'000});
  }
  ~GemmAlgorithmsOnCuda() override { cuda_on_cpu::ResetCublasLt(); }

  static void Algorithms(std::vector<double> ms) { cuda_on_cpu::ResetCublasLt({std::move(ms)}); }
  std::unique_ptr<AlgorithmFile> Open(const std::string& machine = "H200", Use use = Use::kMeasure) const {
    return std::make_unique<AlgorithmFile>(dir_ / "cublaslt.json", machine, use);
  }
  // The results of three steps of the products, and the number of runs for measuring beside them.
  struct Outcome {
    Bits bits;
    int64_t measured = 0;
  };
  static Outcome Run(AlgorithmFile* algorithms, bool graph = true, const CublasLt& (*library)() = FakeCublasLt,
                     double load_seconds = 0) {
    const Products products;
    CudaKernelTable kernels;
    AddGemmCuda(kernels);
    const CudaLibraries libraries = {.cublaslt = library, .cudnn = nullptr};
    const int64_t before = cuda_on_cpu::CublasLtProductsRun();
    CudaExecutor executor(products.trace, products.layout, kernels,
                          {.libraries = &libraries,
                           .graph = graph,
                           .algorithms = algorithms,
                           .load_seconds = load_seconds,
                           .read_through = ReadThroughCuda});
    const auto read = [&](const Tensor& tensor) { return executor.Read<float>(tensor, 0, kSize * kSize); };
    EXPECT_EQ(read(products.first), Bits(kSize * kSize)) << "measuring left something behind";
    EXPECT_EQ(read(products.added), Bits(kSize * kSize));
    Outcome outcome;
    outcome.measured = cuda_on_cpu::CublasLtProductsRun() - before;
    executor.Write<float>(products.a, 0, NormalFloats(kSize * kSize, 1));
    executor.Write<float>(products.b, 0, NormalFloats(kSize * kSize, 2));
    for (int64_t step = 1; step <= 3; ++step) executor.Step({.step = step});
    for (const Tensor& tensor : {products.first, products.second, products.added}) {
      const Bits bits = read(tensor);
      outcome.bits.insert(outcome.bits.end(), bits.begin(), bits.end());
    }
    return outcome;
  }
  // The bits of the algorithm at this place in the list.
  static Bits BitsOf(size_t algorithm) {
    std::vector<double> ms(8, -1);
    ms[algorithm] = 0;
    Algorithms(ms);
    const TempDir dir;
    AlgorithmFile file(dir / "f", "", Use::kMeasure);
    return Run(&file).bits;
  }

  TempDir dir_;
};

TEST_F(GemmAlgorithmsOnCuda, AreTheFirstsWhereNoFileIs) {
  const Outcome outcome = Run(nullptr);
  EXPECT_EQ(outcome.measured, 0);
  EXPECT_EQ(outcome.bits, BitsOf(0));
  EXPECT_NE(outcome.bits, BitsOf(2)) << "the algorithms give the same bits, so this test shows nothing";
}

TEST_F(GemmAlgorithmsOnCuda, AreTheFastestOfEachShapeMeasuredOnce) {
  const Outcome outcome = Run(Open().get());
  EXPECT_EQ(outcome.measured, 2 * 4 * kMeasured) << "two shapes, four algorithms each";
  EXPECT_EQ(outcome.bits, BitsOf(2));
}

// Measuring leaves nothing behind, and the products have the bits of the algorithm that it chose.
TEST_F(GemmAlgorithmsOnCuda, AreChosenUnderTheLoadOfAStep) {
  const Outcome outcome = Run(Open().get(), true, FakeCublasLt, 0.001);
  EXPECT_GE(outcome.measured, 2 * 4 * kMeasured + 4) << "nothing kept the device busy";
  EXPECT_EQ(outcome.bits, BitsOf(2));
}

TEST_F(GemmAlgorithmsOnCuda, AreTheFirstOfThoseThatAreEquallyFast) {
  Algorithms({20'000, 10'050, 10'000, 10'000});
  const Outcome outcome = Run(Open().get());
  EXPECT_EQ(outcome.bits, BitsOf(1));
}

TEST_F(GemmAlgorithmsOnCuda, AreOfTheFirstEight) {
  Algorithms({9000, 9000, 9000, 9000, 9000, 9000, 9000, 5000, 100});
  const Outcome outcome = Run(Open().get());
  EXPECT_EQ(outcome.measured, 2 * 8 * kMeasured);
  EXPECT_EQ(outcome.bits, BitsOf(7));
}

TEST_F(GemmAlgorithmsOnCuda, PassOverThoseThatAreNamedAndRefused) {
  Algorithms({-1, 20'000, -1, 10'000});
  EXPECT_EQ(Run(Open().get()).bits, BitsOf(3));
  Algorithms({-1, -1});
  try {
    const TempDir dir;
    AlgorithmFile file(dir / "f", "", Use::kMeasure);
    Run(&file);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("the product fp32 (64, 64)"));
    EXPECT_THAT(error.message(), HasSubstr("not supported"));
  }
  EXPECT_EQ(cuda_on_cpu::AllocatedBytes(), 0U);
  EXPECT_EQ(cuda_on_cpu::OpenHandles(), 0);
}

TEST_F(GemmAlgorithmsOnCuda, AreTakenFromTheFileWithoutMeasuring) {
  const Outcome first = Run(Open().get());
  Algorithms({1000, 20'000, 10'000, 40'000});  // now others would be chosen
  for (const Use use : {Use::kMeasure, Use::kTakeOnly}) {
    for (const bool graph : {false, true}) {
      const Outcome again = Run(Open("H200", use).get(), graph);
      EXPECT_EQ(again.measured, 0);
      EXPECT_EQ(again.bits, first.bits);
    }
  }
}

TEST_F(GemmAlgorithmsOnCuda, AreMeasuredAnewOnAnotherMachine) {
  Run(Open().get());
  Algorithms({10'000, 20'000});
  const Outcome other = Run(Open("B200").get());
  EXPECT_EQ(other.measured, 2 * 2 * kMeasured);
  EXPECT_EQ(other.bits, BitsOf(0));
}

TEST_F(GemmAlgorithmsOnCuda, AreTheFirstsWhereNothingIsKeptNorMeasured) {
  const Outcome outcome = Run(Open("H200", Use::kTakeOnly).get());
  EXPECT_EQ(outcome.measured, 0);
  EXPECT_EQ(outcome.bits, BitsOf(0));
}

// A complete file may still have been written by somebody else.
TEST_F(GemmAlgorithmsOnCuda, AreNotTakenWhereTheLibraryDoesNotKnowThem) {
  Run(Open().get());
  const std::string text = ReadFile(dir_ / "cublaslt.json");
  const KeptAlgorithms kept = DecodeAlgorithms(text, "");
  ASSERT_EQ(kept.size(), 2U);
  const auto spoil = [&](const std::function<void(std::string&)>& change) {
    KeptAlgorithms spoiled = kept;
    for (auto& [work, algorithm] : spoiled) change(algorithm);
    WriteFile(dir_ / "cublaslt.json", EncodeAlgorithms(spoiled));
    EXPECT_EQ(Run(Open("H200", Use::kTakeOnly).get()).measured, 0);
    const Outcome outcome = Run(Open().get());
    EXPECT_EQ(outcome.measured, 2 * 4 * kMeasured);
    EXPECT_EQ(ReadFile(dir_ / "cublaslt.json"), text) << "the measured algorithms replace it";
    return outcome.bits;
  };
  const Bits bits = spoil([](std::string& algorithm) { algorithm.clear(); });
  EXPECT_EQ(spoil([](std::string& algorithm) { algorithm += 'x'; }), bits);
  EXPECT_EQ(spoil([](std::string& algorithm) { algorithm.assign(algorithm.size(), '\xff'); }), bits);
  EXPECT_EQ(spoil([](std::string& algorithm) { algorithm[3] = 1; }), bits) << "it takes more workspace than planned";
  EXPECT_EQ(bits, BitsOf(2));
}

// For codes, the factors are made on the device before anything is measured.
TEST_F(GemmAlgorithmsOnCuda, MultiplyCodesAlike) {
  constexpr Quantizer kE4M3{Format::kE4M3, Scaling::kCurrent};
  for (const int capability : {80, 90}) {  // emulated, and native
    const auto run = [&](AlgorithmFile* algorithms) {
      cuda_on_cpu::ResetMachine({.major = capability / 10, .minor = capability % 10});
      Trace trace(DeviceDescription{capability, 1 << 20});
      const QuantizedTensor q = NewQuantized(trace, kE4M3, kSize, kSize, Category::kData);
      const Tensor x = trace.Persistent(DType::kF32, kSize, kSize, Category::kData);
      const Tensor y = trace.Persistent(DType::kF32, kSize, kSize, Category::kData);
      Quantize(trace, x, &q, nullptr, {}, {});
      Gemm(trace, q, q, y, true);
      const Layout layout = PlanLayout(trace);
      CudaKernelTable kernels;
      AddGemmCuda(kernels);
      AddQuantizeCuda(kernels);
      const CudaLibraries libraries = FakeLibraries();
      CudaExecutor executor(trace, layout, kernels, {0, &libraries, true, algorithms});
      executor.Write<float>(x, 0, NormalFloats(kSize * kSize, 1));
      for (int64_t step = 1; step <= 3; ++step) executor.Step({.step = step});
      return executor.Read<float>(y, 0, kSize * kSize);
    };
    Algorithms({10'000, 20'000});
    const Bits plain = run(nullptr);
    EXPECT_EQ(run(Open(std::to_string(capability)).get()), plain);
    EXPECT_NE(plain, Bits(kSize * kSize));
  }
}

TEST_F(GemmAlgorithmsOnCuda, SayWhichCallFailedAndGiveEverythingBack) {
  Algorithms({10'000, 20'000});
  LibraryWatch& watch = ThisWatch();
  for (const bool kept : {false, true}) {
    std::map<std::string, int> failures;
    for (int call = 1;; ++call) {
      if (!kept) std::filesystem::remove(dir_ / "cublaslt.json");
      watch = {.fails_at = call};
      bool failed = false;
      try {
        Run(Open().get(), true, WatchedCublasLt);
      } catch (const Error& error) {
        failed = true;
        EXPECT_THAT(error.message(), HasSubstr("cuBLASLt: "));
        EXPECT_EQ(error.kind(), ErrorKind::kInfrastructure);
      }
      EXPECT_EQ(watch.alive, 0) << watch.failed;
      EXPECT_EQ(cuda_on_cpu::AllocatedBytes(), 0U) << watch.failed;
      EXPECT_EQ(cuda_on_cpu::OpenHandles(), 0) << watch.failed;
      // A kept algorithm that is no longer known is measured again.
      EXPECT_EQ(failed, !watch.failed.empty() && watch.failed != "cublasLtMatmulAlgoCheck") << watch.failed;
      if (watch.failed.empty()) break;
      ++failures[watch.failed];
    }
    EXPECT_EQ(failures["cublasLtMatmulAlgoCheck"], kept ? 2 : 0);
    EXPECT_EQ(failures["cublasLtMatmulAlgoGetHeuristic"], kept ? 0 : 2);
    EXPECT_GE(failures["cublasLtMatmul"], kept ? 6 : 2 * 2 * kMeasured);
  }
}

TEST_F(GemmAlgorithmsOnCuda, GiveEverythingBackWhereTheRuntimeFails) {
  Algorithms({10'000, 20'000});
  int64_t call = 0;
  for (bool failed = true; failed;) {
    failed = false;
    std::filesystem::remove(dir_ / "cublaslt.json");
    ThisWatch() = {};
    cuda_on_cpu::ResetMachine();
    cuda_on_cpu::FailCall(++call, cudaErrorUnknown);
    try {
      Run(Open().get(), true, WatchedCublasLt);
    } catch (const Error& error) {
      failed = true;
      EXPECT_EQ(error.kind(), ErrorKind::kInfrastructure) << error.message();
    }
    EXPECT_EQ(ThisWatch().alive, 0) << call;
    EXPECT_EQ(cuda_on_cpu::AllocatedBytes(), 0U) << call;
    EXPECT_EQ(cuda_on_cpu::OpenHandles(), 0) << call;
  }
  EXPECT_GT(call, 60);
}

}  // namespace
}  // namespace ridgeline::engine
#endif
