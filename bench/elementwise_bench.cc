// The memory-bound kernels against memcpy. Each benchmark runs its kernel and a copy that moves as many bytes in turns;
// of_copy is the kernel's bandwidth as a part of the copy's (1: as fast as copying), each in its fastest run.
#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <vector>

#include "engine/device/cpu/kernel.h"
#include "engine/device/cpu/parallel.h"
#include "engine/device/trace.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/embedding.h"
#include "engine/ops/loss.h"
#include "engine/ops/norm.h"
#include "engine/ops/optimizer.h"

namespace ridgeline {
namespace {

using Clock = std::chrono::steady_clock;

// A slab of huge pages, as the executor's.
class Slab {
 public:
  explicit Slab(int64_t bytes) : bytes_(static_cast<size_t>(bytes)) {
    data_ = static_cast<std::byte*>(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (data_ == MAP_FAILED) throw std::bad_alloc();
    madvise(data_, bytes_, MADV_HUGEPAGE);
  }
  ~Slab() { munmap(data_, bytes_); }
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;
  std::byte* data() const { return data_; }

 private:
  size_t bytes_;
  std::byte* data_;
};

double SecondsOf(const std::function<void()>& fn) {
  const auto start = Clock::now();
  fn();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double Fastest(const std::vector<double>& values) { return *std::min_element(values.begin(), values.end()); }

struct Input {
  Tensor tensor;
  float low, high;  // values between them; ids are integers
};

void FillInput(const CpuRun& run, const Input& input) {
  uint32_t state = 1;
  for (int64_t i = 0; i < input.tensor.elements(); ++i) {
    state = state * 1664525 + 1013904223;
    const float value = input.low + (input.high - input.low) * static_cast<float>(state >> 8) / 16777216.0F;
    if (input.tensor.dtype == DType::kF32) {
      run.Data<float>(input.tensor)[i] = value;
    } else if (input.tensor.dtype == DType::kI32) {
      run.Data<int32_t>(input.tensor)[i] = static_cast<int32_t>(value);
    } else {
      uint32_t bits;
      std::memcpy(&bits, &value, sizeof bits);
      run.Data<uint16_t>(input.tensor)[i] = static_cast<uint16_t>(bits >> 16);
    }
  }
}

// Records the last op of `record`'s trace and times it.
void Measure(benchmark::State& state, const std::function<std::vector<Input>(Trace&)>& record) {
  Trace trace;
  const std::vector<Input> inputs = record(trace);
  std::vector<int64_t> offsets;
  int64_t end = 0;
  for (const Storage& storage : trace.storages()) {
    offsets.push_back(end);
    end += (storage.bytes + 4095) / 4096 * 4096;
  }
  const Slab slab(end);
  std::memset(slab.data(), 0, static_cast<size_t>(end));
  const CpuRun run = {slab.data(), offsets.data(), {.step = 3, .learning_rate = 1e-6, .seed = 1}};
  for (const Input& input : inputs) FillInput(run, input);
  CpuKernelTable table;
  AddElementwiseCpu(table);
  AddEmbeddingCpu(table);
  AddLossCpu(table);
  AddNormCpu(table);
  AddOptimizerCpu(table);
  const OpCall& call = trace.calls().back();
  const auto kernel = table.at(call.op).run;

  const auto half = static_cast<int64_t>(call.cost.bytes / 2);
  const Slab from(half), to(half);
  std::memset(from.data(), 1, static_cast<size_t>(half));
  std::memset(to.data(), 1, static_cast<size_t>(half));
  const auto copy = [&] {
    ParallelFor(half, 1 << 20, [&](int64_t begin, int64_t last) {
      std::memcpy(to.data() + begin, from.data() + begin, static_cast<size_t>(last - begin));
    });
  };
  kernel(call, run, nullptr);
  copy();
  std::vector<double> kernel_s, copy_s;
  for (auto _ : state) {
    kernel_s.push_back(SecondsOf([&] { kernel(call, run, nullptr); }));
    copy_s.push_back(SecondsOf(copy));
    state.SetIterationTime(kernel_s.back());
  }
  state.counters["GB/s"] = call.cost.bytes / Fastest(kernel_s) / 1e9;
  state.counters["copy_GB/s"] = static_cast<double>(2 * half) / Fastest(copy_s) / 1e9;
  state.counters["of_copy"] = Fastest(copy_s) / Fastest(kernel_s);
}

constexpr int64_t kTokens = 16384;
constexpr int64_t kHidden = 2048;
constexpr int64_t kWeights = int64_t{32} << 20;

Tensor Make(Trace& trace, DType dtype, int64_t rows, int64_t cols) {
  return trace.Persistent(dtype, rows, cols, Category::kData);
}

void BM_Adam(benchmark::State& state, DType work, bool split, DType moments, DType gradient) {
  Measure(state, [&](Trace& t) -> std::vector<Input> {
    const Tensor w = Make(t, work, 1, kWeights);
    const Tensor m = Make(t, moments, 1, kWeights);
    const Tensor v = Make(t, moments, 1, kWeights);
    const Tensor g = Make(t, gradient, 1, kWeights);
    Adam(t, w, split ? Make(t, DType::kI16, 1, kWeights) : Tensor{}, m, v, g, {}, {.weight_decay = 0.1});
    return {{w, -1, 1}, {m, -1, 1}, {v, 0, 1}, {g, -1, 1}};
  });
}
void BM_RmsNorm(benchmark::State& state, DType dtype) {
  Measure(state, [&](Trace& t) -> std::vector<Input> {
    const Tensor x = Make(t, dtype, kTokens, kHidden);
    const Tensor w = Make(t, dtype, 1, kHidden);
    RmsNorm(t, x, w, Make(t, dtype, kTokens, kHidden), Make(t, DType::kF32, 1, kTokens), 1e-5);
    return {{x, -1, 1}, {w, 0, 1}};
  });
}
void BM_RmsNormBackward(benchmark::State& state, DType dtype) {
  Measure(state, [&](Trace& t) -> std::vector<Input> {
    const Tensor x = Make(t, dtype, kTokens, kHidden);
    const Tensor dy = Make(t, dtype, kTokens, kHidden);
    const Tensor w = Make(t, dtype, 1, kHidden);
    const Tensor rstd = Make(t, DType::kF32, 1, kTokens);
    RmsNormBackward(t, dy, x, w, rstd, Make(t, dtype, kTokens, kHidden), false, Make(t, DType::kF32, 1, kHidden),
                    false);
    return {{x, -1, 1}, {dy, -1, 1}, {w, 0, 1}, {rstd, 1, 2}};
  });
}
void BM_LayerNorm(benchmark::State& state, DType dtype) {
  Measure(state, [&](Trace& t) -> std::vector<Input> {
    const Tensor x = Make(t, dtype, kTokens, kHidden);
    const Tensor w = Make(t, dtype, 1, kHidden);
    LayerNorm(t, x, w, w, Make(t, dtype, kTokens, kHidden), Make(t, DType::kF32, 1, kTokens),
              Make(t, DType::kF32, 1, kTokens), 1e-5);
    return {{x, -1, 1}, {w, 0, 1}};
  });
}
void BM_LayerNormBackward(benchmark::State& state, DType dtype) {
  Measure(state, [&](Trace& t) -> std::vector<Input> {
    const Tensor x = Make(t, dtype, kTokens, kHidden);
    const Tensor dy = Make(t, dtype, kTokens, kHidden);
    const Tensor w = Make(t, dtype, 1, kHidden);
    const Tensor mean = Make(t, DType::kF32, 1, kTokens);
    const Tensor rstd = Make(t, DType::kF32, 1, kTokens);
    LayerNormBackward(t, dy, x, w, mean, rstd, Make(t, dtype, kTokens, kHidden), false,
                      Make(t, DType::kF32, 1, kHidden), Make(t, DType::kF32, 1, kHidden), false);
    return {{x, -1, 1}, {dy, -1, 1}, {w, 0, 1}, {rstd, 1, 2}};
  });
}
void BM_SwiGlu(benchmark::State& state, DType dtype) {
  Measure(state, [&](Trace& t) -> std::vector<Input> {
    const Tensor x = Make(t, dtype, kTokens, 2 * kHidden);
    SwiGlu(t, x, Make(t, dtype, kTokens, kHidden));
    return {{x, -4, 4}};
  });
}
void BM_SwiGluBackward(benchmark::State& state, DType dtype) {
  Measure(state, [&](Trace& t) -> std::vector<Input> {
    const Tensor x = Make(t, dtype, kTokens, 2 * kHidden);
    const Tensor dy = Make(t, dtype, kTokens, kHidden);
    SwiGluBackward(t, dy, x, Make(t, dtype, kTokens, 2 * kHidden));
    return {{x, -4, 4}, {dy, -1, 1}};
  });
}
void BM_Gelu(benchmark::State& state, DType dtype) {
  Measure(state, [&](Trace& t) -> std::vector<Input> {
    const Tensor x = Make(t, dtype, kTokens, kHidden);
    Gelu(t, x, Make(t, dtype, kTokens, kHidden));
    return {{x, -4, 4}};
  });
}
void BM_GeluBackward(benchmark::State& state, DType dtype) {
  Measure(state, [&](Trace& t) -> std::vector<Input> {
    const Tensor x = Make(t, dtype, kTokens, kHidden);
    const Tensor dy = Make(t, dtype, kTokens, kHidden);
    GeluBackward(t, dy, x, dy);
    return {{x, -4, 4}, {dy, -1, 1}};
  });
}
void BM_Add(benchmark::State& state, DType dtype) {
  Measure(state, [&](Trace& t) -> std::vector<Input> {
    const Tensor a = Make(t, dtype, kTokens, kHidden);
    const Tensor b = Make(t, dtype, kTokens, kHidden);
    Add(t, a, b, b);
    return {{a, -4, 4}};
  });
}
void BM_DropoutAdd(benchmark::State& state, DType dtype) {
  Measure(state, [&](Trace& t) -> std::vector<Input> {
    const Tensor a = Make(t, dtype, kTokens, kHidden);
    const Tensor b = Make(t, dtype, kTokens, kHidden);
    DropoutAdd(t, a, b, b, 0.1, {1});
    return {{a, -4, 4}};
  });
}
void BM_Rope(benchmark::State& state, DType dtype) {
  Measure(state, [&](Trace& t) -> std::vector<Input> {
    const Tensor x = Make(t, dtype, kTokens, kHidden);
    const Tensor cos_sin = Make(t, DType::kF32, 512, 64);
    Rope(t, x, cos_sin, 512, 64, false);
    return {{x, -4, 4}, {cos_sin, 0.7F, 0.71F}};
  });
}
void BM_ColumnSum(benchmark::State& state, DType dtype) {
  Measure(state, [&](Trace& t) -> std::vector<Input> {
    const Tensor x = Make(t, dtype, kTokens, kHidden);
    ColumnSum(t, x, Make(t, DType::kF32, 1, kHidden), false);
    return {{x, -4, 4}};
  });
}
void BM_SquaredSum(benchmark::State& state, DType dtype) {
  Measure(state, [&](Trace& t) -> std::vector<Input> {
    const Tensor x = Make(t, dtype, kTokens, kHidden);
    SquaredSum(t, x, Make(t, DType::kF32, 1, 1));
    return {{x, -4, 4}};
  });
}
// In place and over the last run's gradients: tiny logits, as costly as any.
void BM_CrossEntropy(benchmark::State& state, DType dtype) {
  Measure(state, [&](Trace& t) -> std::vector<Input> {
    const Tensor x = Make(t, dtype, 1024, 32000);
    const Tensor targets = Make(t, DType::kI32, 1, 1024);
    CrossEntropy(t, x, targets, Make(t, DType::kF32, 1, 1), 1);
    return {{x, -4, 4}, {targets, 0, 32000}};
  });
}
void BM_EmbeddingBackward(benchmark::State& state, DType dtype) {
  Measure(state, [&](Trace& t) -> std::vector<Input> {
    const Tensor dx = Make(t, dtype, kTokens, kHidden);
    const Tensor ids = Make(t, DType::kI32, 1, kTokens);
    EmbeddingBackward(t, dx, ids, Make(t, DType::kF32, 32000, kHidden), {}, 512);
    return {{dx, -4, 4}, {ids, 0, 32000}};
  });
}

constexpr DType kF32 = DType::kF32;
constexpr DType kBF16 = DType::kBF16;
#define RIDGELINE_BENCH_FLOATS(name)                                  \
  BENCHMARK_CAPTURE(name, fp32, kF32)->UseManualTime()->MinTime(0.3); \
  BENCHMARK_CAPTURE(name, bf16, kBF16)->UseManualTime()->MinTime(0.3)

BENCHMARK_CAPTURE(BM_Adam, master, kBF16, true, kF32, kF32)->UseManualTime()->MinTime(0.3);
BENCHMARK_CAPTURE(BM_Adam, fp32, kF32, false, kF32, kF32)->UseManualTime()->MinTime(0.3);
BENCHMARK_CAPTURE(BM_Adam, bf16, kBF16, false, kBF16, kBF16)->UseManualTime()->MinTime(0.3);
RIDGELINE_BENCH_FLOATS(BM_RmsNorm);
RIDGELINE_BENCH_FLOATS(BM_RmsNormBackward);
RIDGELINE_BENCH_FLOATS(BM_LayerNorm);
RIDGELINE_BENCH_FLOATS(BM_LayerNormBackward);
RIDGELINE_BENCH_FLOATS(BM_SwiGlu);
RIDGELINE_BENCH_FLOATS(BM_SwiGluBackward);
RIDGELINE_BENCH_FLOATS(BM_Gelu);
RIDGELINE_BENCH_FLOATS(BM_GeluBackward);
RIDGELINE_BENCH_FLOATS(BM_Add);
RIDGELINE_BENCH_FLOATS(BM_DropoutAdd);
RIDGELINE_BENCH_FLOATS(BM_Rope);
RIDGELINE_BENCH_FLOATS(BM_ColumnSum);
RIDGELINE_BENCH_FLOATS(BM_SquaredSum);
RIDGELINE_BENCH_FLOATS(BM_CrossEntropy);
RIDGELINE_BENCH_FLOATS(BM_EmbeddingBackward);

}  // namespace
}  // namespace ridgeline
