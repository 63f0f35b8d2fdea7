#include "engine/train/model_state.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstring>
#include <numbers>
#include <optional>

#include "engine/device/cpu/parallel.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/optimizer.h"
#include "engine/ops/philox.h"
#include "engine/tensor/bf16.h"
#include "engine/tensor/fp16.h"
#include "engine/train/quantized_weights.h"

namespace ridgeline {
namespace {

constexpr uint32_t kInitStream = 0x1417'0000;  // + the parameter's index; step 0, which training never uses

// Four normal numbers from one draw (Box & Muller, 1958).
std::array<float, 4> Normals(uint64_t seed, uint32_t stream, int64_t quad) {
  const auto draw = RandomGroup(seed, 0, stream, static_cast<uint64_t>(quad));
  std::array<float, 4> normals{};
  for (size_t pair = 0; pair < 2; ++pair) {
    const float u = (static_cast<float>(draw[2 * pair] >> 8) + 1.0F) * 0x1p-24F;  // (0, 1]
    const float angle = static_cast<float>(draw[2 * pair + 1] >> 8) * 0x1p-24F * 2 * std::numbers::pi_v<float>;
    const float radius = std::sqrt(-2 * std::log(u));
    normals[2 * pair] = radius * std::cos(angle);
    normals[2 * pair + 1] = radius * std::sin(angle);
  }
  return normals;
}

}  // namespace

float ModelState::Element(const Tensor& t, int64_t index) const {
  switch (t.dtype) {
    case DType::kF32:
      return executor_.Data<float>(t)[index];
    case DType::kF16:
      return FromFp16(executor_.Data<uint16_t>(t)[index]);
    default:
      return FromBf16(executor_.Data<uint16_t>(t)[index]);
  }
}

void ModelState::SetElement(const ParameterState& state, int64_t index, float value) {
  if (state.whole.defined()) SetCompute(state.whole, index, value);
  const int64_t kept = index - state.first;
  if (!state.m.defined() || kept < 0 || kept >= state.m.elements()) return;
  const Tensor& master = state.master;
  if (master.defined() && master.dtype == DType::kI16) {
    SplitMaster(value, executor_.Data<uint16_t>(state.work)[kept], executor_.Data<int16_t>(master)[kept]);
    return;
  }
  if (master.defined()) executor_.Data<float>(master)[kept] = value;
  if (state.work.defined()) SetCompute(state.work, kept, value);
}

uint16_t ModelState::RoundedToBf16(float value) const {
  if (program_.recipe->master == Master::kNone) return ToBf16(value);
  uint16_t work = 0;
  int16_t rest = 0;
  SplitMaster(value, work, rest);
  return work;
}

void ModelState::SetCompute(const Tensor& tensor, int64_t index, float value) {
  switch (tensor.dtype) {
    case DType::kF32:
      executor_.Data<float>(tensor)[index] = value;
      break;
    case DType::kF16:
      executor_.Data<uint16_t>(tensor)[index] = ToFp16(value);
      break;
    default:
      executor_.Data<uint16_t>(tensor)[index] = RoundedToBf16(value);
  }
}

void ModelState::Initialize() {
  const auto seed = static_cast<uint64_t>(program_.spec.seed);
  const auto std_dev = static_cast<float>(program_.shape.init_std);
  for (size_t p = 0; p < program_.states.size(); ++p) {
    const ParameterState& state = program_.states[p];
    const Init init = program_.shape.parameters[p].init;
    const int64_t n = program_.shape.parameters[p].elements();
    const uint32_t stream = kInitStream + static_cast<uint32_t>(p);
    std::optional<FirstCodes> codes;
    if (state.quantized()) codes.emplace(state);
    const std::span<uint16_t> numbers = codes ? codes->numbers() : std::span<uint16_t>();
    ParallelFor((n + 3) / 4, 4096, [&](int64_t begin, int64_t end) {
      for (int64_t quad = begin; quad < end; ++quad) {
        const std::array<float, 4> normals =
            init == Init::kNormal ? Normals(seed, stream, quad) : std::array<float, 4>{};
        for (int64_t i = 0; i < 4 && 4 * quad + i < n; ++i) {
          const float value = init == Init::kNormal ? std_dev * normals[static_cast<size_t>(i)]
                              : init == Init::kOnes ? 1.0F
                                                    : 0.0F;
          SetElement(state, 4 * quad + i, value);
          if (!numbers.empty()) numbers[static_cast<size_t>(4 * quad + i)] = RoundedToBf16(value);
        }
      }
    });
    if (codes) codes->WriteTo(executor_, state);
    for (const Tensor& moment : {state.m, state.v}) {
      if (!moment.defined()) continue;
      auto* from = executor_.Data<std::byte>({moment.storage, moment.dtype}) + moment.offset * SizeOf(moment.dtype);
      std::memset(from, 0, static_cast<size_t>(moment.bytes()));
    }
  }
  if (const Tensor& state = program_.tensors.loss_scale; state.defined()) {
    executor_.Data<float>(state)[0] = kFirstLossScale;
  }
  for (const DelayedScaling& scaling : program_.delayed_scaling) {
    std::fill_n(executor_.Data<float>(scaling.scale), scaling.scale.elements(), 1.0F);
  }
  if (const Tensor& table = program_.tensors.rope_table; table.defined()) {
    FillRopeTable(executor_.Data<float>(table), table.rows, table.cols, program_.spec.rope_theta);
  }
}

void ModelState::SetWeight(size_t parameter, const ParameterPart& part, std::span<const float> values) {
  const ParameterState& state = program_.states[parameter];
  assert(state.work.defined() || state.master.defined());
  const int64_t first = part.first_row * program_.shape.parameters[parameter].cols;
  for (size_t i = 0; i < values.size(); ++i) SetElement(state, first + static_cast<int64_t>(i), values[i]);
}

std::vector<float> ModelState::Weight(size_t parameter, const ParameterPart& part) const {
  const ParameterState& state = program_.states[parameter];
  const int64_t cols = program_.shape.parameters[parameter].cols;
  std::vector<float> values(static_cast<size_t>(part.rows * cols));
  const int64_t first = part.first_row * cols;
  if (state.quantized() && !state.master.defined()) {
    ReadQuantized(executor_, state.rows, first, values);
    return values;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t at = first + static_cast<int64_t>(i);
    if (state.master.defined() && state.master.dtype == DType::kI16) {
      values[i] = JoinMaster(executor_.Data<uint16_t>(state.work)[at], executor_.Data<int16_t>(state.master)[at]);
    } else {
      values[i] = Element(state.master.defined() ? state.master : state.work, at);
    }
  }
  return values;
}

std::vector<float> ModelState::Gradient(size_t parameter, const ParameterPart& part) const {
  const Tensor rows = program_.states[parameter].gradient.Rows(part.first_row, part.rows);
  const Tensor& scale = program_.tensors.loss_scale;
  const float factor = scale.defined() ? 1 / executor_.Data<float>(scale)[0] : 1;
  std::vector<float> values(static_cast<size_t>(rows.elements()));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = factor * Element(rows, static_cast<int64_t>(i));
  }
  return values;
}

double ModelState::Loss() const { return *executor_.Data<float>(program_.tensors.loss); }

int64_t ModelState::SkippedSteps() const {
  const Tensor& state = program_.tensors.loss_scale;
  return state.defined() ? static_cast<int64_t>(executor_.Data<float>(state)[2]) : 0;
}

double ModelState::GradNorm() const {
  return program_.grad_norm.defined() ? *executor_.Data<float>(program_.grad_norm) : NAN;
}

}  // namespace ridgeline
