// Attention by cuDNN, compared with ours: on a GPU, or on a fake of cuDNN that computes the graphs by their definitions
// and counts which calls are cuDNN's. (attention_plans_test.cc asks cuDNN itself for its plans.)
#ifdef RIDGELINE_CUDA_TESTS

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/device/algorithm_file.h"
#include "engine/device/cuda/executor.h"
#include "engine/device/cuda/libraries.h"
#include "engine/ops/attention.h"
#include "engine/ops/cuda/kernels.h"
#include "tests/base/temp_dir.h"
#include "tests/engine/device/cuda_machine.h"
#include "tests/engine/ops/op_runner.h"
#ifdef RIDGELINE_CUDA_ON_CPU
#include "cuda_on_cpu/cudnn.h"
#endif

namespace ridgeline::engine {
namespace {

[[maybe_unused]] constexpr int64_t kRuns = 2;  // of a call, by OpRunner

struct CudnnCase {
  AttentionShape shape;
  DType dtype = DType::kBF16;
  int compute_capability = 90;
  int64_t first_col = 0;  // of q in the matrix of q, k and v
};

// The outputs of both passes with these libraries.
struct Outputs {
  std::vector<float> o, lse, dq, dk, dv;
};
Outputs BothPasses(const CudnnCase& c, const CudaLibraries& libraries) {
  cuda_machine::ResetMachine();
  const AttentionShape& s = c.shape;
  OpRunner runner;
  runner.trace = Trace(CudaDevice(c.compute_capability));
  const int64_t tokens = s.batch * s.seq;
  const int64_t wide = s.heads * s.head_dim;
  const int64_t narrow = s.kv_heads * s.head_dim;
  const Tensor qkv = runner.Normal(c.dtype, tokens, c.first_col + wide + 2 * narrow, 1);
  const Tensor d_qkv = runner.Empty(c.dtype, tokens, c.first_col + wide + 2 * narrow);
  const auto q = [&](const Tensor& t) { return t.Cols(c.first_col, wide); };
  const auto k = [&](const Tensor& t) { return t.Cols(c.first_col + wide, narrow); };
  const auto v = [&](const Tensor& t) { return t.Cols(c.first_col + wide + narrow, narrow); };
  const Tensor d_o = runner.Normal(c.dtype, tokens, wide, 2);
  const Tensor o = runner.Empty(c.dtype, tokens, wide);
  const Tensor lse = runner.Empty(DType::kF32, s.batch * s.heads, s.seq);
  AttentionForward(runner.trace, q(qkv), k(qkv), v(qkv), o, lse, s);
  AttentionBackward(runner.trace, d_o, q(qkv), k(qkv), v(qkv), o, lse, q(d_qkv), k(d_qkv), v(d_qkv), s);
  CudaKernelTable table;
  AddAttentionCuda(table);
  runner.Run(OpKernels(table, libraries));
  return {runner.Read(o), runner.Read(lse), runner.Read(q(d_qkv)), runner.Read(k(d_qkv)), runner.Read(v(d_qkv))};
}

// |got - want| / |want|, in the Euclidean norm.
double Distance(const std::vector<float>& got, const std::vector<float>& want) {
  double difference = 0;
  double size = 1e-30;
  for (size_t i = 0; i < want.size(); ++i) {
    difference += std::pow(double{got[i]} - want[i], 2);
    size += std::pow(double{want[i]}, 2);
  }
  return std::sqrt(difference / size);
}

// Checks that both outputs agree as closely as attention_test.cc requires.
void ExpectOurs(const CudnnCase& c, const Cudnn& (*cudnn)()) {
  SCOPED_TRACE(testing::Message() << "seq " << c.shape.seq << " head_dim " << c.shape.head_dim << " "
                                  << DTypeName(c.dtype) << " on " << c.compute_capability);
  const Outputs want = BothPasses(c, {.cudnn = nullptr});
  const Outputs got = BothPasses(c, {.cudnn = cudnn});
  EXPECT_LT(Distance(got.lse, want.lse), 1e-5);
  EXPECT_LT(Distance(got.o, want.o), 5e-3);
  EXPECT_LT(Distance(got.dv, want.dv), 5e-3);
  if (c.shape.seq == 1) return;
  EXPECT_LT(Distance(got.dq, want.dq), 1e-2);
  EXPECT_LT(Distance(got.dk, want.dk), 1e-2);
}

// The same, and counts the plans that compute it, where they can be counted.
#ifdef RIDGELINE_CUDA_ON_CPU
void ExpectPlans(const CudnnCase& c, int64_t plans, const cuda_on_cpu::CudnnOptions& options = {}) {
  cuda_on_cpu::ResetCudnn(options);
  ExpectOurs(c, FakeCudnn);
  EXPECT_EQ(cuda_on_cpu::CudnnPlansRun(), kRuns * plans);
}
#else
void ExpectPlans(const CudnnCase& c, int64_t /*plans*/) {
  if (CanBe(c.compute_capability)) ExpectOurs(c, LoadCudnn);
}
#endif

TEST(CudnnAttentionOnCuda, ComputesAttention) {
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    ExpectPlans({{1, 1, 1, 1, 8}, dtype}, 2);
    ExpectPlans({{2, 33, 4, 2, 16}, dtype}, 2);
    ExpectPlans({{1, 40, 3, 3, 64}, dtype, 100}, 2);
    ExpectPlans({{1, 17, 6, 1, 24}, dtype, 90, 8}, 2);
  }
}

TEST(CudnnAttentionOnCuda, ComputesItToRepeatToTheBit) {
  for (const int capability : {90, 100}) {
    ExpectPlans({{2, 33, 4, 2, 16, true}, DType::kBF16, capability}, 2);
    ExpectPlans({{1, 17, 2, 2, 24, true}, DType::kF16, capability}, 2);
  }
}

TEST(CudnnAttentionOnCuda, LeavesWhatItDoesNotTakeToOtherKernels) {
  ExpectPlans({{1, 20, 2, 2, 16}, DType::kF32}, 0);
  ExpectPlans({{1, 20, 2, 1, 20}}, 0);
  ExpectPlans({{1, 20, 2, 1, 264}}, 0);
  ExpectPlans({{1, 20, 2, 1, 16}, DType::kBF16, 90, 4}, 0);  // rows at multiples of 8 bytes
  ExpectPlans({{1, 20, 2, 1, 136}, DType::kBF16, 90}, 2);
  ExpectPlans({{1, 20, 2, 1, 136}, DType::kBF16, 100}, 1);  // forward only
}

#ifdef RIDGELINE_CUDA_ON_CPU

TEST(CudnnAttentionOnCuda, TakesTheFirstPlanThatCanBeBuiltAndFits) {
  ExpectPlans({{1, 20, 2, 1, 16}}, 0, {.proposals = 0});
  ExpectPlans({{1, 20, 2, 1, 16}}, 0, {.first_fails = true});
  ExpectPlans({{1, 20, 2, 1, 16}}, 2, {.proposals = 2, .first_fails = true});
  ExpectPlans({{1, 20, 2, 1, 16}}, 1,
              {.workspace_bytes = 257});  // the backward call has that much, the forward call does not
  ExpectPlans({{1, 20, 2, 2, 16}}, 0, {.workspace_bytes = 257});
  // Whose engine notes that its results do not repeat is taken where nobody asks that they do.
  ExpectPlans({{1, 21, 2, 1, 16}}, 2, {.first_is_nondeterministic = true});
  ExpectPlans({{1, 21, 2, 1, 16, true}}, 0, {.first_is_nondeterministic = true});
  ExpectPlans({{1, 21, 2, 1, 16, true}}, 2, {.proposals = 2, .first_is_nondeterministic = true});
}

// Layers have equal calls, and a plan takes seconds to make.
TEST(CudnnAttentionOnCuda, MakesAPlanOnceForEqualCalls) {
  const CudaLibraries libraries = {.cudnn = FakeCudnn};
  cuda_machine::ResetMachine();
  cuda_on_cpu::ResetCudnn();
  OpRunner runner;
  runner.trace = Trace(CudaDevice(90));
  const AttentionShape shape{1, 8, 1, 1, 8};
  const Tensor q = runner.Normal(DType::kBF16, 8, 8, 1);
  const Tensor o = runner.Empty(DType::kBF16, 8, 8);
  const Tensor lse = runner.Empty(DType::kF32, 1, 8);
  for (int layer = 0; layer < 3; ++layer) AttentionForward(runner.trace, q, q, q, o, lse, shape);
  CudaKernelTable table;
  AddAttentionCuda(table);
  runner.Run(OpKernels(table, libraries));
  EXPECT_EQ(cuda_on_cpu::CudnnPlansBuilt(), 1);
  EXPECT_EQ(cuda_on_cpu::CudnnPlansRun(), kRuns * 3);
}

TEST(CudnnAttentionOnCuda, SaysWhatFailed) {
  const auto failure = [](const Cudnn& (*cudnn)()) {
    try {
      BothPasses({{1, 8, 1, 1, 8}}, {.cudnn = cudnn});
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInfrastructure);
      return error.message();
    }
    return std::string("nothing");
  };
  EXPECT_THAT(failure([]() -> const Cudnn& {
                static Cudnn table = FakeCudnn();
                table.cudnnCreate = [](cudnnHandle_t*) { return CUDNN_STATUS_NOT_INITIALIZED; };
                return table;
              }),
              testing::StartsWith("cuDNN: starting it on this device failed: "));
  EXPECT_THAT(failure([]() -> const Cudnn& {
                static Cudnn table = FakeCudnn();
                table.cudnnBackendExecute = [](cudnnHandle_t, cudnnBackendDescriptor_t, cudnnBackendDescriptor_t) {
                  return CUDNN_STATUS_EXECUTION_FAILED;
                };
                return table;
              }),
              testing::StartsWith("cuDNN: starting a plan failed: "));
}

// All plans are timed once, on request, and the choice is kept. Without a file of choices, the first is taken.
TEST(CudnnAttentionOnCuda, TakesTheFastestPlanWhereAllAreTimed) {
  const TempDir dir;
  const auto notes_of = [&](bool with_file, double load_seconds, std::vector<double> ms) {
    cuda_machine::ResetMachine();
    cuda_on_cpu::ResetCudnn({.proposals = 3, .ms = std::move(ms)});
    Trace trace(CudaDevice(90));
    const auto tensor = [&](DType dtype, int64_t rows, int64_t cols) {
      return trace.Persistent(dtype, rows, cols, Category::kData);
    };
    const auto half = [&] { return tensor(DType::kBF16, 8, 16); };
    const Tensor q = half(), k = half(), v = half(), o = half(), d_o = half(), dq = half(), dk = half(), dv = half();
    const Tensor lse = tensor(DType::kF32, 2, 8);
    const AttentionShape shape{1, 8, 2, 2, 8};
    AttentionForward(trace, q, k, v, o, lse, shape);
    AttentionBackward(trace, d_o, q, k, v, o, lse, dq, dk, dv, shape);
    const Layout layout = PlanLayout(trace);
    CudaKernelTable table;
    AddAttentionCuda(table);
    const CudaLibraries libraries = {.cudnn = FakeCudnn};
    AlgorithmFile file(dir / "kept", "H200", AlgorithmFile::Use::kMeasure);
    std::map<std::string, std::string> notes;
    const CudaExecutor executor(trace, layout, table,
                                {.libraries = &libraries,
                                 .algorithms = with_file ? &file : nullptr,
                                 .notes = &notes,
                                 .load_seconds = load_seconds,
                                 .all_plans = true,
                                 .read_through = ReadThroughCuda});
    return notes.at("attention_forward") + "; " + notes.at("attention_backward");
  };
  constexpr const char* kThird =
      "cuDNN's engine 2, the fastest of 3 plans; cuDNN's engine 2, the fastest of 3 plans, bits may differ between "
      "runs";
  EXPECT_EQ(notes_of(true, 0, {30'000, 20'000, 10'000}), kThird);
  EXPECT_EQ(cuda_on_cpu::CudnnPlansRun(), 2 * 3 * 6);
  EXPECT_EQ(notes_of(true, 0, {10'000, 20'000, 30'000}), kThird) << "what is kept is measured again";
  EXPECT_EQ(cuda_on_cpu::CudnnPlansRun(), 0);
  EXPECT_EQ(notes_of(false, 0, {30'000, 20'000, 10'000}),
            "cuDNN's engine 0; cuDNN's engine 0, bits may differ between runs");
  std::filesystem::remove(dir / "kept");
  EXPECT_EQ(notes_of(true, 0.001, {30'000, 20'000, 10'000}), kThird) << "under the load of a step";
}

// A lost device refuses every plan, with whichever status. Slower kernels are no answer to that.
TEST(CudnnAttentionOnCuda, NamesWhatEndedTheDeviceWhileAPlanIsMade) {
  const auto and_device_is_lost = []() -> const Cudnn& {
    static Cudnn table = FakeCudnn();
    table.cudnnBackendFinalize = [](cudnnBackendDescriptor_t descriptor) {
      const cudnnStatus_t status = FakeCudnn().cudnnBackendFinalize(descriptor);
      if (status == CUDNN_STATUS_SUCCESS) return status;
      const CudaStream stream = NewCudaStream();
      EXPECT_EQ(cuda_on_cpu::Enqueue(stream.get(), [] { return cudaErrorIllegalAddress; }), cudaSuccess);
      EXPECT_EQ(cudaStreamSynchronize(stream.get()), cudaErrorIllegalAddress);
      return status;
    };
    return table;
  };
  cuda_on_cpu::ResetCudnn({.first_fails = true});
  try {
    BothPasses({{1, 8, 1, 1, 8}}, {.cudnn = and_device_is_lost});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInternal);
    EXPECT_THAT(error.message(), testing::StartsWith("an earlier call: "));
    EXPECT_THAT(error.message(), testing::HasSubstr("cudaErrorIllegalAddress"));
  }
  cuda_machine::ResetMachine();
}

// Runs both passes with each call of cuDNN failing once. Slower kernels never replace a failed call.
TEST(CudnnAttentionOnCuda, EveryCallThatFailsIsAnErrorAndNothingIsLeft) {
  LibraryWatch& watch = ThisWatch();
  std::map<std::string, int> failures;
  for (const bool wants_memory : {false, true}) {
    for (int call = 1;; ++call) {
      cuda_on_cpu::ResetCudnn();
      watch = {.fails_at = call, .wants_memory = wants_memory};
      ErrorKind kind = ErrorKind::kInternal;
      try {
        BothPasses({{1, 8, 2, 1, 8}}, {.cudnn = WatchedCudnn});
      } catch (const Error& error) {
        kind = error.kind();
        EXPECT_THAT(error.message(), testing::StartsWith("cuDNN: "));
      }
      EXPECT_EQ(watch.alive, 0) << watch.failed;
      EXPECT_EQ(cuda_machine::AllocatedBytes(), 0U);
      if (watch.failed.empty()) break;
      EXPECT_EQ(kind, wants_memory ? ErrorKind::kOutOfMemory : ErrorKind::kInfrastructure) << watch.failed;
      ++failures[watch.failed];
    }
  }
  for (const auto& [function, count] : failures) EXPECT_GE(count, 2) << function;
  EXPECT_EQ(failures.size(), 7U);  // all functions that can fail and do not free something
}

// Without cuDNN half-precision attention would be many times slower, and the figures would be another program's.
TEST(CudnnAttentionOnCuda, IsMissedInWords) {
  const CudaLibraries libraries = {
      .cudnn = []() -> const Cudnn& { throw Error(ErrorKind::kInfrastructure, "cuDNN cannot be loaded"); }};
  try {
    BothPasses({{1, 8, 1, 1, 8}}, libraries);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), testing::HasSubstr("cuDNN cannot be loaded"));
  }
}

#endif

}  // namespace
}  // namespace ridgeline::engine

#endif
