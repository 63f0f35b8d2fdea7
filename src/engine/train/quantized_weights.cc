#include "engine/train/quantized_weights.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "engine/ops/cpu/kernels.h"
#include "engine/ops/cpu/quantized_rows.h"

namespace ridgeline {
namespace {

QuantizedTensor ToNearest(Trace& trace, const QuantizedTensor& q) {
  Quantizer quantizer = q.quantizer;
  quantizer.rounding = Rounding::kNearest;
  return NewQuantized(trace, quantizer, q.outer, q.inner, Category::kParameters, true);
}

}  // namespace

void ReadQuantized(CpuExecutor& executor, const QuantizedTensor& q, int64_t first, std::span<float> to) {
  QuantizedData data = {q.quantizer, executor.Data<uint8_t>(q.codes), nullptr, q.codes.row_stride, 0};
  if (q.scales.defined()) {
    data.scales = executor.Data<uint8_t>(q.scales);
    data.scale_stride = q.scales.row_stride;
  }
  const float scale = q.tensor_scale.defined() ? *executor.Data<float>(q.tensor_scale) : 1;
  std::vector<float> row(static_cast<size_t>(q.inner));
  const int64_t end = first + static_cast<int64_t>(to.size());
  for (int64_t at = first; at < end;) {
    const int64_t col = at % q.inner;
    const int64_t count = std::min(q.inner - col, end - at);
    DequantizePart(data, at / q.inner, 1, 0, q.inner, row.data(), q.inner);
    for (int64_t i = 0; i < count; ++i) {
      to[static_cast<size_t>(at - first + i)] = row[static_cast<size_t>(col + i)] * scale;
    }
    at += count;
  }
}

FirstCodes::FirstCodes(const ParameterState& state)
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
  CpuKernelTable kernels;
  AddQuantizeCpu(kernels);
  executor_ = std::make_unique<CpuExecutor>(trace_, layout_, kernels);
  if (delayed_.scale.defined()) *executor_->Data<float>(delayed_.scale) = 1;
}

std::span<uint16_t> FirstCodes::numbers() {
  return {executor_->Data<uint16_t>(numbers_), static_cast<size_t>(numbers_.elements())};
}

void FirstCodes::WriteTo(CpuExecutor& executor, const ParameterState& state) {
  executor_->Step({});
  const auto copy = [&](const Tensor& from, const Tensor& to) {
    if (!from.defined()) return;
    std::memcpy(executor.Data<std::byte>({to.storage, to.dtype}),
                executor_->Data<std::byte>({from.storage, from.dtype}), static_cast<size_t>(from.bytes()));
  };
  for (const auto& [from, to] : {std::pair{rows_, state.rows}, {columns_, state.columns}}) {
    copy(from.codes, to.codes);
    copy(from.scales, to.scales);
    copy(from.tensor_scale, to.tensor_scale);
  }
}

}  // namespace ridgeline
