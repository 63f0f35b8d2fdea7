// Measures the quantizers against memcpy, as the recipes use them: both orientations at once, unless stated otherwise.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "bench/against_copy.h"
#include "engine/ops/cpu/kernels.h"
#include "engine/ops/quantize.h"

namespace ridgeline {
namespace {

constexpr int64_t kTokens = 16384;
constexpr int64_t kHidden = 2048;

constexpr engine::Quantizer kDelayed = {engine::Format::kE4M3, engine::Scaling::kDelayed};
constexpr engine::Quantizer kCurrent = {engine::Format::kE5M2, engine::Scaling::kCurrent};
constexpr engine::Quantizer kMx = {engine::Format::kE4M3, engine::Scaling::kBlock32};
constexpr engine::Quantizer kNv = {engine::Format::kE2M1, engine::Scaling::kBlock16};
constexpr engine::Quantizer kNvTransformed = {engine::Format::kE2M1, engine::Scaling::kBlock16,
                                              engine::Rounding::kNearest, true};
constexpr engine::Quantizer kNvStochastic = {engine::Format::kE2M1, engine::Scaling::kBlock16,
                                             engine::Rounding::kStochastic};
constexpr engine::Quantizer kNvBoth = {engine::Format::kE2M1, engine::Scaling::kBlock16, engine::Rounding::kStochastic,
                                       true};
constexpr engine::Quantizer kNvSquare = {engine::Format::kE2M1, engine::Scaling::kBlock16x16};
constexpr engine::Quantizer kNvSquareStochastic = {engine::Format::kE2M1, engine::Scaling::kBlock16x16,
                                                   engine::Rounding::kStochastic};
constexpr engine::Quantizer kCurrentStochastic = {engine::Format::kE4M3, engine::Scaling::kCurrent,
                                                  engine::Rounding::kStochastic};
constexpr engine::Quantizer kMxStochastic = {engine::Format::kE4M3, engine::Scaling::kBlock32,
                                             engine::Rounding::kStochastic};

engine::Tensor Make(engine::Trace& trace, engine::DType dtype, int64_t rows, int64_t cols) {
  return trace.Persistent(dtype, rows, cols, engine::Category::kData);
}

engine::CpuKernelTable Table() {
  engine::CpuKernelTable table;
  engine::AddQuantizeCpu(table);
  return table;
}

enum Ways : uint8_t { kRow = 1, kCol = 2, kBoth = 3 };

void BM_Quantize(benchmark::State& state, engine::DType dtype, const engine::Quantizer& by_row,
                 const engine::Quantizer& by_col, Ways ways) {
  MeasureAgainstCopy(state, Table(), [&](engine::Trace& t) -> std::vector<Input> {
    const engine::Tensor x = Make(t, dtype, kTokens, kHidden);
    const engine::QuantizedTensor row = engine::NewQuantized(t, by_row, kTokens, kHidden, engine::Category::kData);
    const engine::QuantizedTensor col = engine::NewQuantized(t, by_col, kHidden, kTokens, engine::Category::kData);
    const engine::DelayedScale delayed = {Make(t, engine::DType::kF32, 1, 1), Make(t, engine::DType::kF32, 1, 1)};
    engine::Quantize(t, x, (ways & kRow) != 0 ? &row : nullptr, (ways & kCol) != 0 ? &col : nullptr, delayed, {1});
    return {{x, -4, 4}, {delayed.scale, 99, 101}};
  });
}
void BM_Dequantize(benchmark::State& state, engine::DType dtype, const engine::Quantizer& quantizer) {
  MeasureAgainstCopy(state, Table(), [&](engine::Trace& t) -> std::vector<Input> {
    const engine::QuantizedTensor q = engine::NewQuantized(t, quantizer, kTokens, kHidden, engine::Category::kData);
    engine::Dequantize(t, q, Make(t, dtype, kTokens, kHidden));
    std::vector<Input> inputs = {{q.codes, 0, 256}};
    if (q.scales.defined()) inputs.push_back({q.scales, 100, 126});
    if (q.tensor_scale.defined()) inputs.push_back({q.tensor_scale, 0.01F, 0.02F});
    return inputs;
  });
}
void BM_Transposed(benchmark::State& state, const engine::Quantizer& quantizer) {
  MeasureAgainstCopy(state, Table(), [&](engine::Trace& t) -> std::vector<Input> {
    const engine::QuantizedTensor q = engine::NewQuantized(t, quantizer, kTokens, kHidden, engine::Category::kData);
    engine::Transposed(t, q, engine::Category::kData);
    std::vector<Input> inputs = {{q.codes, 0, 256}};
    if (q.scales.defined()) inputs.push_back({q.scales, 100, 126});
    return inputs;
  });
}

constexpr engine::DType kF32 = engine::DType::kF32;
constexpr engine::DType kBF16 = engine::DType::kBF16;
#define RIDGELINE_BENCH_QUANTIZE(name, ...) \
  BENCHMARK_CAPTURE(BM_Quantize, name, __VA_ARGS__)->UseManualTime()->MinTime(0.3)

RIDGELINE_BENCH_QUANTIZE(fp8_delayed, kBF16, kDelayed, kDelayed, kBoth);
RIDGELINE_BENCH_QUANTIZE(fp8_delayed_fp32, kF32, kDelayed, kDelayed, kBoth);
RIDGELINE_BENCH_QUANTIZE(fp8_delayed_row, kBF16, kDelayed, kDelayed, kRow);
RIDGELINE_BENCH_QUANTIZE(fp8_delayed_col, kBF16, kDelayed, kDelayed, kCol);
RIDGELINE_BENCH_QUANTIZE(fp8_current, kBF16, kCurrent, kCurrent, kBoth);
RIDGELINE_BENCH_QUANTIZE(mxfp8, kBF16, kMx, kMx, kBoth);
RIDGELINE_BENCH_QUANTIZE(mxfp8_fp32, kF32, kMx, kMx, kBoth);
RIDGELINE_BENCH_QUANTIZE(mxfp8_row, kBF16, kMx, kMx, kRow);
RIDGELINE_BENCH_QUANTIZE(mxfp8_col, kBF16, kMx, kMx, kCol);
RIDGELINE_BENCH_QUANTIZE(nvfp4_x, kBF16, kNv, kNvTransformed, kBoth);
RIDGELINE_BENCH_QUANTIZE(nvfp4_x_row, kBF16, kNv, kNvTransformed, kRow);
RIDGELINE_BENCH_QUANTIZE(nvfp4_x_col, kBF16, kNv, kNvTransformed, kCol);
RIDGELINE_BENCH_QUANTIZE(nvfp4_dy, kBF16, kNvStochastic, kNvBoth, kBoth);
RIDGELINE_BENCH_QUANTIZE(nvfp4_w, kBF16, kNvSquare, kNvSquare, kBoth);
RIDGELINE_BENCH_QUANTIZE(nvfp4_w_fp32, kF32, kNvSquare, kNvSquare, kBoth);
RIDGELINE_BENCH_QUANTIZE(fp8_current_stochastic, kF32, kCurrentStochastic, kCurrentStochastic, kRow);
RIDGELINE_BENCH_QUANTIZE(mxfp8_stochastic, kF32, kMxStochastic, kMxStochastic, kBoth);
RIDGELINE_BENCH_QUANTIZE(nvfp4_w_stochastic, kF32, kNvSquareStochastic, kNvSquareStochastic, kRow);
BENCHMARK_CAPTURE(BM_Transposed, fp8, kCurrent)->UseManualTime()->MinTime(0.3);
BENCHMARK_CAPTURE(BM_Transposed, nvfp4, kNvSquare)->UseManualTime()->MinTime(0.3);
BENCHMARK_CAPTURE(BM_Dequantize, fp8, kBF16, kCurrent)->UseManualTime()->MinTime(0.3);
BENCHMARK_CAPTURE(BM_Dequantize, mxfp8, kBF16, kMx)->UseManualTime()->MinTime(0.3);
BENCHMARK_CAPTURE(BM_Dequantize, nvfp4, kBF16, kNv)->UseManualTime()->MinTime(0.3);

}  // namespace
}  // namespace ridgeline
