// Measures the memory-bound kernels against memcpy.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "bench/against_copy.h"
#include "engine/ops/cpu/kernels.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/embedding.h"
#include "engine/ops/loss.h"
#include "engine/ops/norm.h"
#include "engine/ops/optimizer.h"

namespace ridgeline {
namespace {

void Measure(benchmark::State& state, const std::function<std::vector<Input>(Trace&)>& record) {
  CpuKernelTable table;
  AddElementwiseCpu(table);
  AddEmbeddingCpu(table);
  AddLossCpu(table);
  AddNormCpu(table);
  AddOptimizerCpu(table);
  MeasureAgainstCopy(state, table, record);
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
    DropoutAdd(t, a, b, b, 0, {});
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
// Runs in place over the last run's gradients. These logits are tiny, but cost as much as any.
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
