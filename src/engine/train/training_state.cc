#include "engine/train/training_state.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "engine/ops/optimizer.h"

namespace ridgeline {
namespace {

std::string StoredDType(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "F32";
    case DType::kBF16:
      return "BF16";
    case DType::kI16:
      return "I16";
    case DType::kI32:
      return "I32";
  }
  return {};
}

}  // namespace

int64_t StateTensor::elements() const {
  int64_t n = 1;
  for (const int64_t size : shape) n *= size;
  return n;
}

TrainingState::TrainingState(const StepProgram& program, CpuExecutor& executor) : executor_(executor) {
  for (size_t p = 0; p < program.states.size(); ++p) {
    const Parameter& parameter = program.shape.parameters[p];
    const ParameterState& state = program.states[p];
    for (const ParameterPart& part : parameter.parts) {
      StateTensor weight;
      weight.name = part.name;
      weight.dtype = StoredDType(state.low.defined() ? DType::kF32 : state.work.dtype);
      weight.shape = parameter.rows == 1 ? std::vector{parameter.cols} : std::vector{part.rows, parameter.cols};
      weight.is_weight = true;
      weight.high = state.work;
      weight.low = state.low;
      weight.offset = part.first_row * parameter.cols;
      tensors_.push_back(weight);
      for (const auto& [suffix, moment] : {std::pair{".exp_avg", state.m}, {".exp_avg_sq", state.v}}) {
        tensors_.push_back(
            {part.name + suffix, StoredDType(moment.dtype), weight.shape, false, moment, {}, weight.offset});
      }
    }
  }
  for (const NamedTensor& other : program.other_state) {
    tensors_.push_back({other.name,
                        StoredDType(other.tensor.dtype),
                        {other.tensor.rows, other.tensor.cols},
                        false,
                        other.tensor,
                        {},
                        0});
  }
  // Wider elements first: in a file that begins aligned, every tensor is.
  std::stable_sort(tensors_.begin(), tensors_.end(),
                   [](const StateTensor& a, const StateTensor& b) { return a.element_bytes() > b.element_bytes(); });
}

TrainingState::Range TrainingState::Held(const StateTensor& tensor) const {
  // This process is rank 0, whose part of a sharded parameter begins with the parameter.
  return {0, std::clamp(tensor.high.elements() - tensor.offset, int64_t{0}, tensor.elements())};
}

void TrainingState::Read(const StateTensor& tensor, int64_t first, std::span<std::byte> to) const {
  const int64_t at = tensor.offset + first;
  const auto count = static_cast<int64_t>(to.size()) / tensor.element_bytes();
  assert(first >= 0 && at + count <= tensor.high.elements());
  if (!tensor.low.defined()) {
    const auto* from = executor_.Data<std::byte>({tensor.high.storage, tensor.high.dtype});
    std::memcpy(to.data(), from + at * tensor.element_bytes(), to.size());
    return;
  }
  const uint16_t* high = executor_.Data<uint16_t>(tensor.high) + at;
  const int16_t* low = executor_.Data<int16_t>(tensor.low) + at;
  for (int64_t i = 0; i < count; ++i) {
    const float master = JoinMaster(high[i], low[i]);
    std::memcpy(to.data() + i * static_cast<int64_t>(sizeof master), &master, sizeof master);
  }
}

void TrainingState::Write(const StateTensor& tensor, int64_t first, std::span<const std::byte> from) {
  const int64_t at = tensor.offset + first;
  const auto count = static_cast<int64_t>(from.size()) / tensor.element_bytes();
  assert(first >= 0 && at + count <= tensor.high.elements());
  if (!tensor.low.defined()) {
    auto* to = executor_.Data<std::byte>({tensor.high.storage, tensor.high.dtype});
    std::memcpy(to + at * tensor.element_bytes(), from.data(), from.size());
    return;
  }
  uint16_t* high = executor_.Data<uint16_t>(tensor.high) + at;
  int16_t* low = executor_.Data<int16_t>(tensor.low) + at;
  for (int64_t i = 0; i < count; ++i) {
    float master = 0;
    std::memcpy(&master, from.data() + i * static_cast<int64_t>(sizeof master), sizeof master);
    SplitMaster(master, high[i], low[i]);
  }
}

}  // namespace ridgeline
