// cuDNN makes its plans of attention for devices that are described here but not present, or for a GPU that is present.
// It reports their workspace, and the declarations of a trace must cover it. Needs cuDNN's libraries.
#if defined(RIDGELINE_CUDA_TESTS) && !defined(RIDGELINE_SANITIZED)  // which would watch cuDNN

#include "engine/ops/cuda/attention_plans.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "run/presets.h"
#include "tests/engine/device/cuda_machine.h"

namespace ridgeline::engine {
namespace {

struct DescribedDevice {
  const char* name;
  int compute_capability;
  std::string json;  // cuDNN's description; empty: the GPU of this machine
};

// An H200's description is its own (bench/results/h200/device.json). A B200's is from its data sheet: its clocks, cache
// and memory are approximate.
std::string Describe(const char* name, int compute_capability, int multiprocessors, int64_t memory_bytes,
                     int64_t clock_khz, int64_t memory_clock_khz, int64_t cache_bytes) {
  return fmt::format(
      R"({{"maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64],"regsPerBlock":65536,)"
      R"("multiProcessorCount":{},"warpSize":32,"maxSharedMemoryPerBlock":49152,"maxSharedMemoryPerBlockOptin":232448,)"
      R"("reservedSharedMemoryPerBlock":1024,"maxRegistersPerSM":65536,"maxCtasPerSM":32,"maxThreadsPerBlock":1024,)"
      R"("maxThreadsPerSM":2048,"pciDeviceId":0,"isTccDriver":0,"supportCoopLaunch":1,"totalGlobalMem":{},)"
      R"("smClockRateKHz":{},"memClockRateKHz":{},"l2CacheSize":{},"cudaDeviceId":0,"deviceVer":{},)"
      R"("driverVer":13000,"deviceName":"{}"}})",
      multiprocessors, memory_bytes, clock_khz, memory_clock_khz, cache_bytes, 10 * compute_capability, name);
}
[[maybe_unused]] DescribedDevice H200() {
  return {"H200", 90, Describe("NVIDIA H200", 90, 132, 150109880320, 1980000, 3201000, 62914560)};
}
DescribedDevice B200() {
  return {"B200", 100, Describe("NVIDIA B200", 100, 148, 191500000000, 1965000, 3996000, 132644864)};
}

class Plans : public testing::Test {
 protected:
  // cuDNN compiles kernels and lets a driver load them: this machine's, or one that only pretends to.
  void SetUp() override {
    if (dlopen("libcuda.so.1", RTLD_NOW) == nullptr) {
      ASSERT_NE(dlopen(RIDGELINE_BINARY_DIR "/tests/cuda_driver/libcuda.so.1", RTLD_NOW), nullptr) << dlerror();
    }
    try {
      cudnn_ = &LoadCudnn();
    } catch (const Error& error) {
      GTEST_SKIP() << error.message();
    }
  }

  std::string DescriptionOf(const DescribedDevice& device) const { return Of(device).Describe(*cudnn_); }

  // Both passes have a plan within the bytes that the trace declares for this device, and use all of them.
  void Check(DescribedDevice device, const AttentionShape& s, DType dtype = DType::kBF16) {
    if (device.json.empty()) device.compute_capability = CapabilityHere();
    SCOPED_TRACE(fmt::format("batch {} seq {} heads {}/{} head_dim {} {}", s.batch, s.seq, s.heads, s.kv_heads,
                             s.head_dim, DTypeName(dtype)));
    Trace trace(CudaDevice(device.compute_capability));
    const int64_t tokens = s.batch * s.seq;
    const int64_t wide = s.heads * s.head_dim;
    const int64_t narrow = s.kv_heads * s.head_dim;
    const auto tensor = [&](DType type, int64_t rows, int64_t cols) {
      return trace.Temporary(type, rows, cols, Category::kActivations);
    };
    const Tensor qkv = tensor(dtype, tokens, wide + 2 * narrow);
    const Tensor d_qkv = tensor(dtype, tokens, wide + 2 * narrow);
    const Tensor o = tensor(dtype, tokens, wide);
    const Tensor d_o = tensor(dtype, tokens, wide);
    const Tensor lse = tensor(DType::kF32, s.batch * s.heads, s.seq);
    const auto q = [&](const Tensor& t) { return t.Cols(0, wide); };
    const auto k = [&](const Tensor& t) { return t.Cols(wide, narrow); };
    const auto v = [&](const Tensor& t) { return t.Cols(wide + narrow, narrow); };
    AttentionForward(trace, q(qkv), k(qkv), v(qkv), o, lse, s);
    AttentionBackward(trace, d_o, q(qkv), k(qkv), v(qkv), o, lse, q(d_qkv), k(d_qkv), v(d_qkv), s);
    ExpectPlan(device, trace.calls()[0], PlanAttentionForward);
    ExpectPlan(device, trace.calls()[1], PlanAttentionBackward);
  }

 private:
  template <typename Plan>
  void ExpectPlan(const DescribedDevice& device, const OpCall& call, const Plan& plan_attention) {
    constexpr int64_t kSlabUnit = 256;
    SCOPED_TRACE(call.op->name);
    const CudnnAttention attention(call);
    std::string why;
    const auto plans = plan_attention(*cudnn_, attention, Of(device), why);
    ASSERT_FALSE(plans.empty()) << why;
    EXPECT_EQ(why, "");  // cuDNN's first proposal was taken
    EXPECT_LE(attention.workspace_bytes - plans.front().workspace_bytes(), kSlabUnit);
  }

  CudnnDevice Of(const DescribedDevice& device) const {
    if (!device.json.empty()) return {*cudnn_, device.json};
    static const cudnnHandle_t handle = [&] {
      cudnnHandle_t created = nullptr;
      CheckCudnn(*cudnn_, cudnn_->cudnnCreate(&created), "starting it on this device");
      return created;
    }();
    return CudnnDevice(handle);
  }

  const Cudnn* cudnn_ = nullptr;
};

#ifdef RIDGELINE_CUDA_ON_CPU
constexpr DescribedDevice (*kDevices[])() = {H200, B200};
#else
DescribedDevice Here() { return {"Here", 0, ""}; }
constexpr DescribedDevice (*kDevices[])() = {Here};
#endif

struct Heads {
  DescribedDevice (*device)();
  int64_t heads, kv_heads, head_dim;
};
// A plan takes a second or more, so every shape is a test of its own.
std::vector<Heads> PresetsHeads() {
  std::set<std::array<int64_t, 3>> shapes;
  constexpr int64_t kMost = 100'000'000'000;  // parameters; larger models are only for predictions of memory and time
  for (const Preset& preset : Presets()) {
    if (preset.is_ours() && preset.parameters < kMost) {
      shapes.insert({preset.heads, preset.kv_heads, preset.head_dim});
    }
  }
  std::vector<Heads> all;
  for (const auto device : kDevices) {
    for (const auto& [heads, kv_heads, head_dim] : shapes) all.push_back({device, heads, kv_heads, head_dim});
  }
  return all;
}
class CudnnPresetsOnCuda : public Plans, public testing::WithParamInterface<Heads> {};
INSTANTIATE_TEST_SUITE_P(Presets, CudnnPresetsOnCuda, testing::ValuesIn(PresetsHeads()), [](const auto& info) {
  const Heads& h = info.param;
  return fmt::format("{}Heads{}KvHeads{}Dim{}", h.device().name, h.heads, h.kv_heads, h.head_dim);
});
TEST_P(CudnnPresetsOnCuda, FitTheTrace) {
  const auto [device, heads, kv_heads, head_dim] = GetParam();
  Check(device(), {1, 2048, heads, kv_heads, head_dim});
}

class CudnnPlansOnCuda : public Plans, public testing::WithParamInterface<DescribedDevice (*)()> {};
INSTANTIATE_TEST_SUITE_P(Devices, CudnnPlansOnCuda, testing::ValuesIn(kDevices),
                         [](const auto& info) { return info.param().name; });
// bench/gpu.sh saves a card's description, from which other machines make plans.
TEST_P(CudnnPlansOnCuda, AreOfADeviceThatCudnnDescribes) {
  DescribedDevice device = GetParam()();
  device.json = DescriptionOf(device);
  EXPECT_THAT(device.json, testing::HasSubstr("\"multiProcessorCount\":"));
  if (device.compute_capability == 0) device.compute_capability = CapabilityHere();
  Check(device, {2, 256, 4, 2, 64});
}
TEST_P(CudnnPlansOnCuda, FitTheTraceInFp16) { Check(GetParam()(), {2, 1024, 12, 4, 64}, DType::kF16); }
TEST_P(CudnnPlansOnCuda, FitTheTraceForShortAndLongSequences) {
  for (const int64_t seq : {7, 100, 128, 129}) Check(GetParam()(), {2, seq, 4, 2, 64});
  for (const int64_t seq : {128, 8192}) Check(GetParam()(), {2, seq, 4, 4, 128});
}
TEST_P(CudnnPlansOnCuda, FitTheTraceWhereGradientsAreToRepeat) {
  for (const int64_t seq : {7, 129}) Check(GetParam()(), {2, seq, 4, 2, 64, true});
  Check(GetParam()(), {1, 2048, 4, 4, 128, true});
}
TEST_P(CudnnPlansOnCuda, FitTheTraceForOtherHeads) {
  Check(GetParam()(), {1, 512, 4, 2, 8});
  Check(GetParam()(), {1, 512, 4, 2, 48});
  if (GetParam() != B200 && CapabilityOr(90) == 90) Check(GetParam()(), {1, 512, 4, 2, 256});
}

}  // namespace
}  // namespace ridgeline::engine

#endif
