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

void Measure(benchmark::State& state, const std::function<std::vector<Input>(engine::Trace&)>& record) {
  engine::CpuKernelTable table;
  engine::AddElementwiseCpu(table);
  engine::AddEmbeddingCpu(table);
  engine::AddLossCpu(table);
  engine::AddNormCpu(table);
  engine::AddOptimizerCpu(table);
  MeasureAgainstCopy(state, table, record);
}

constexpr int64_t kTokens = 16384;
constexpr int64_t kHidden = 2048;
constexpr int64_t kWeights = int64_t{32} << 20;

engine::Tensor Make(engine::Trace& trace, engine::DType dtype, int64_t rows, int64_t cols) {
  return trace.Persistent(dtype, rows, cols, engine::Category::kData);
}

void BM_Adam(benchmark::State& state, engine::DType work, bool split, engine::DType moments, engine::DType gradient) {
  Measure(state, [&](engine::Trace& t) -> std::vector<Input> {
    const engine::Tensor w = Make(t, work, 1, kWeights);
    const engine::Tensor m = Make(t, moments, 1, kWeights);
    const engine::Tensor v = Make(t, moments, 1, kWeights);
    const engine::Tensor g = Make(t, gradient, 1, kWeights);
    engine::Adam(t, w, split ? Make(t, engine::DType::kI16, 1, kWeights) : engine::Tensor{}, m, v, g, {},
                 {.weight_decay = 0.1});
    return {{w, -1, 1}, {m, -1, 1}, {v, 0, 1}, {g, -1, 1}};
  });
}
void BM_RmsNorm(benchmark::State& state, engine::DType dtype) {
  Measure(state, [&](engine::Trace& t) -> std::vector<Input> {
    const engine::Tensor x = Make(t, dtype, kTokens, kHidden);
    const engine::Tensor w = Make(t, dtype, 1, kHidden);
    engine::RmsNorm(t, x, w, Make(t, dtype, kTokens, kHidden), Make(t, engine::DType::kF32, 1, kTokens), 1e-5);
    return {{x, -1, 1}, {w, 0, 1}};
  });
}
void BM_RmsNormBackward(benchmark::State& state, engine::DType dtype) {
  Measure(state, [&](engine::Trace& t) -> std::vector<Input> {
    const engine::Tensor x = Make(t, dtype, kTokens, kHidden);
    const engine::Tensor dy = Make(t, dtype, kTokens, kHidden);
    const engine::Tensor w = Make(t, dtype, 1, kHidden);
    const engine::Tensor rstd = Make(t, engine::DType::kF32, 1, kTokens);
    engine::RmsNormBackward(t, dy, x, w, rstd, Make(t, dtype, kTokens, kHidden), false,
                            Make(t, engine::DType::kF32, 1, kHidden), false);
    return {{x, -1, 1}, {dy, -1, 1}, {w, 0, 1}, {rstd, 1, 2}};
  });
}
void BM_LayerNorm(benchmark::State& state, engine::DType dtype) {
  Measure(state, [&](engine::Trace& t) -> std::vector<Input> {
    const engine::Tensor x = Make(t, dtype, kTokens, kHidden);
    const engine::Tensor w = Make(t, dtype, 1, kHidden);
    engine::LayerNorm(t, x, w, w, Make(t, dtype, kTokens, kHidden), Make(t, engine::DType::kF32, 1, kTokens),
                      Make(t, engine::DType::kF32, 1, kTokens), 1e-5);
    return {{x, -1, 1}, {w, 0, 1}};
  });
}
void BM_LayerNormBackward(benchmark::State& state, engine::DType dtype) {
  Measure(state, [&](engine::Trace& t) -> std::vector<Input> {
    const engine::Tensor x = Make(t, dtype, kTokens, kHidden);
    const engine::Tensor dy = Make(t, dtype, kTokens, kHidden);
    const engine::Tensor w = Make(t, dtype, 1, kHidden);
    const engine::Tensor mean = Make(t, engine::DType::kF32, 1, kTokens);
    const engine::Tensor rstd = Make(t, engine::DType::kF32, 1, kTokens);
    engine::LayerNormBackward(t, dy, x, w, mean, rstd, Make(t, dtype, kTokens, kHidden), false,
                              Make(t, engine::DType::kF32, 1, kHidden), Make(t, engine::DType::kF32, 1, kHidden),
                              false);
    return {{x, -1, 1}, {dy, -1, 1}, {w, 0, 1}, {rstd, 1, 2}};
  });
}
void BM_SwiGlu(benchmark::State& state, engine::DType dtype) {
  Measure(state, [&](engine::Trace& t) -> std::vector<Input> {
    const engine::Tensor x = Make(t, dtype, kTokens, 2 * kHidden);
    engine::SwiGlu(t, x, Make(t, dtype, kTokens, kHidden));
    return {{x, -4, 4}};
  });
}
void BM_SwiGluBackward(benchmark::State& state, engine::DType dtype) {
  Measure(state, [&](engine::Trace& t) -> std::vector<Input> {
    const engine::Tensor x = Make(t, dtype, kTokens, 2 * kHidden);
    const engine::Tensor dy = Make(t, dtype, kTokens, kHidden);
    engine::SwiGluBackward(t, dy, x, Make(t, dtype, kTokens, 2 * kHidden));
    return {{x, -4, 4}, {dy, -1, 1}};
  });
}
void BM_Gelu(benchmark::State& state, engine::DType dtype) {
  Measure(state, [&](engine::Trace& t) -> std::vector<Input> {
    const engine::Tensor x = Make(t, dtype, kTokens, kHidden);
    engine::Gelu(t, x, Make(t, dtype, kTokens, kHidden));
    return {{x, -4, 4}};
  });
}
void BM_GeluBackward(benchmark::State& state, engine::DType dtype) {
  Measure(state, [&](engine::Trace& t) -> std::vector<Input> {
    const engine::Tensor x = Make(t, dtype, kTokens, kHidden);
    const engine::Tensor dy = Make(t, dtype, kTokens, kHidden);
    engine::GeluBackward(t, dy, x, dy);
    return {{x, -4, 4}, {dy, -1, 1}};
  });
}
void BM_Add(benchmark::State& state, engine::DType dtype) {
  Measure(state, [&](engine::Trace& t) -> std::vector<Input> {
    const engine::Tensor a = Make(t, dtype, kTokens, kHidden);
    const engine::Tensor b = Make(t, dtype, kTokens, kHidden);
    engine::DropoutAdd(t, a, b, b, 0, {});
    return {{a, -4, 4}};
  });
}
void BM_DropoutAdd(benchmark::State& state, engine::DType dtype) {
  Measure(state, [&](engine::Trace& t) -> std::vector<Input> {
    const engine::Tensor a = Make(t, dtype, kTokens, kHidden);
    const engine::Tensor b = Make(t, dtype, kTokens, kHidden);
    engine::DropoutAdd(t, a, b, b, 0.1, {1});
    return {{a, -4, 4}};
  });
}
void BM_Rope(benchmark::State& state, engine::DType dtype) {
  Measure(state, [&](engine::Trace& t) -> std::vector<Input> {
    const engine::Tensor x = Make(t, dtype, kTokens, kHidden);
    const engine::Tensor cos_sin = Make(t, engine::DType::kF32, 512, 64);
    engine::Rope(t, x, cos_sin, 512, 64, false);
    return {{x, -4, 4}, {cos_sin, 0.7F, 0.71F}};
  });
}
void BM_ColumnSum(benchmark::State& state, engine::DType dtype) {
  Measure(state, [&](engine::Trace& t) -> std::vector<Input> {
    const engine::Tensor x = Make(t, dtype, kTokens, kHidden);
    engine::ColumnSum(t, x, Make(t, engine::DType::kF32, 1, kHidden), false);
    return {{x, -4, 4}};
  });
}
void BM_SquaredSum(benchmark::State& state, engine::DType dtype) {
  Measure(state, [&](engine::Trace& t) -> std::vector<Input> {
    const engine::Tensor x = Make(t, dtype, kTokens, kHidden);
    engine::SquaredSum(t, x, Make(t, engine::DType::kF32, 1, 1));
    return {{x, -4, 4}};
  });
}
// Runs in place over the last run's gradients. These logits are tiny, but cost as much as any.
void BM_CrossEntropy(benchmark::State& state, engine::DType dtype) {
  Measure(state, [&](engine::Trace& t) -> std::vector<Input> {
    const engine::Tensor x = Make(t, dtype, 1024, 32000);
    const engine::Tensor targets = Make(t, engine::DType::kI32, 1, 1024);
    engine::CrossEntropy(t, x, targets, Make(t, engine::DType::kF32, 1, 1), 1);
    return {{x, -4, 4}, {targets, 0, 32000}};
  });
}
void BM_EmbeddingBackward(benchmark::State& state, engine::DType dtype) {
  Measure(state, [&](engine::Trace& t) -> std::vector<Input> {
    const engine::Tensor dx = Make(t, dtype, kTokens, kHidden);
    const engine::Tensor ids = Make(t, engine::DType::kI32, 1, kTokens);
    engine::EmbeddingBackward(t, dx, ids, Make(t, engine::DType::kF32, 32000, kHidden), {}, 512);
    return {{dx, -4, 4}, {ids, 0, 32000}};
  });
}

constexpr engine::DType kF32 = engine::DType::kF32;
constexpr engine::DType kBF16 = engine::DType::kBF16;
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
