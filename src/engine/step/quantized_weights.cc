#include "engine/step/quantized_weights.h"

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "engine/ops/quantize.h"
#include "engine/precision/reference.h"

namespace ridgeline::engine {
namespace {

QuantizedTensor ToNearest(Trace& trace, const QuantizedTensor& q) {
  Quantizer quantizer = q.quantizer;
  quantizer.rounding = Rounding::kNearest;
  return NewQuantized(trace, quantizer, q.outer, q.inner, Category::kParameters, true);
}

}  // namespace

std::vector<float> ReadQuantized(const Executor& executor, const QuantizedTensor& q, int64_t first, int64_t count) {
  const int64_t first_row = first / q.inner;
  const int64_t rows = (first + count + q.inner - 1) / q.inner - first_row;
  const auto rows_of = [&](const Tensor& t) { return executor.Read<uint8_t>(t, first_row * t.cols, rows * t.cols); };
  ReferenceTensor part;
  part.quantizer = q.quantizer;
  part.outer = rows;
  part.inner = q.inner;
  part.codes = rows_of(q.codes);
  if (q.scales.defined()) part.scales = rows_of(q.scales);
  if (q.tensor_scale.defined()) part.tensor_scale = executor.Element<float>(q.tensor_scale);
  const std::vector<float> padded = DequantizeReference(part);
  std::vector<float> values(static_cast<size_t>(count));
  const int64_t padded_inner = q.quantizer.PaddedInner(q.inner);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t at = first + i - first_row * q.inner;
    values[static_cast<size_t>(i)] = padded[static_cast<size_t>(at / q.inner * padded_inner + at % q.inner)];
  }
  return values;
}

FirstCodes::FirstCodes(const ParameterState& state, const Executor& executor)
    : numbers_(trace_.Persistent(DType::kBF16, state.rows.outer, state.rows.inner, Category::kParameters)),
      rows_(ToNearest(trace_, state.rows)) {
  const bool has_columns = state.columns.codes.defined();
  if (has_columns) columns_ = ToNearest(trace_, state.columns);
  if (state.rows.quantizer.scaling == Scaling::kDelayed) {
    delayed_ = {trace_.Persistent(DType::kF32, 1, 1, Category::kData),
                trace_.Persistent(DType::kF32, 1, 1, Category::kData)};
  }
  Quantize(trace_, numbers_, &rows_, has_columns ? &columns_ : nullptr, delayed_, {});
  layout_ = PlanLayout(trace_);
  executor_ = executor.Beside(trace_, layout_);
  if (delayed_.scale.defined()) executor_->Write<float>(delayed_.scale, 0, std::array{1.0F});
}

void FirstCodes::WriteTo(Executor& executor, const ParameterState& state) {
  executor_->Step({});
  const auto copy = [&](const Tensor& from, const Tensor& to) {
    if (!from.defined()) return;
    std::vector<std::byte> bytes(static_cast<size_t>(from.bytes()));
    executor_->Read<std::byte>(from, 0, std::span(bytes));
    executor.Write<std::byte>(to, 0, bytes);
  };
  for (const auto& [from, to] : {std::pair{rows_, state.rows}, {columns_, state.columns}}) {
    copy(from.codes, to.codes);
    copy(from.scales, to.scales);
    copy(from.tensor_scale, to.tensor_scale);
  }
}

}  // namespace ridgeline::engine
