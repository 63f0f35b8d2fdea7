#include "engine/train/model_state.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <optional>

#include "base/parallel.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/first_weights.h"
#include "engine/ops/optimizer.h"
#include "engine/step/quantized_weights.h"
#include "engine/tensor/bf16.h"
#include "engine/tensor/fp16.h"

namespace ridgeline::engine {
namespace {

constexpr int64_t kInitChunk = int64_t{1} << 16;  // elements made at once, a multiple of 4
constexpr int64_t kGrain = int64_t{1} << 14;      // elements for which a core is worth its start
constexpr uint32_t kInitStream = 0x1417'0000;     // plus the parameter's index

// Calls fn(i) for each element, on all cores, because weights come by the billion.
template <typename Fn>
void ForElements(size_t elements, const Fn& fn) {
  ParallelFor(static_cast<int64_t>(elements), kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) fn(static_cast<size_t>(i));
  });
}

}  // namespace

std::vector<float> ModelState::Elements(const Tensor& t, int64_t first, int64_t count) const {
  if (t.dtype == DType::kF32) return executor_.Read<float>(t, first, count);
  const std::vector<uint16_t> bits = executor_.Read<uint16_t>(t, first, count);
  std::vector<float> values(bits.size());
  std::transform(bits.begin(), bits.end(), values.begin(), t.dtype == DType::kF16 ? FromFp16 : FromBf16);
  return values;
}

void ModelState::SetElements(const ParameterState& state, int64_t first, std::span<const float> values) {
  if (state.whole.defined()) SetCompute(state.whole, first, values);
  if (!state.m.defined()) return;
  const auto count = static_cast<int64_t>(values.size());
  const int64_t begin = std::clamp(state.first, first, first + count);
  const int64_t end = std::clamp(state.first + state.m.elements(), begin, first + count);
  const std::span<const float> kept =
      values.subspan(static_cast<size_t>(begin - first), static_cast<size_t>(end - begin));
  const int64_t at = begin - state.first;
  const Tensor& master = state.master;
  if (master.defined() && master.dtype == DType::kI16) {
    std::vector<uint16_t> work(kept.size());
    std::vector<int16_t> rest(kept.size());
    ForElements(kept.size(), [&](size_t i) { SplitMaster(kept[i], work[i], rest[i]); });
    executor_.Write<uint16_t>(state.work, at, work);
    executor_.Write<int16_t>(master, at, rest);
    return;
  }
  if (master.defined()) executor_.Write<float>(master, at, kept);
  if (state.work.defined()) SetCompute(state.work, at, kept);
}

uint16_t ModelState::RoundedToBf16(float value) const {
  if (program_.recipe->master == Master::kNone) return ToBf16(value);
  uint16_t work = 0;
  int16_t rest = 0;
  SplitMaster(value, work, rest);
  return work;
}

void ModelState::SetCompute(const Tensor& tensor, int64_t first, std::span<const float> values) {
  if (tensor.dtype == DType::kF32) return executor_.Write<float>(tensor, first, values);
  std::vector<uint16_t> bits(values.size());
  const bool fp16 = tensor.dtype == DType::kF16;
  ForElements(bits.size(), [&](size_t i) { bits[i] = fp16 ? ToFp16(values[i]) : RoundedToBf16(values[i]); });
  executor_.Write<uint16_t>(tensor, first, bits);
}

void ModelState::Initialize(const FirstValues& values) {
  const FirstValues from_seed = [this](size_t p, int64_t first, std::span<float> to) { FromSeed(p, first, to); };
  for (size_t p = 0; p < program_.states.size(); ++p) {
    if (values) {
      InitializeWeight(p, values, false);
    } else if (!MadeOnDevice(p)) {
      InitializeWeight(p, from_seed, true);
    }
    for (const Tensor& moment : {program_.states[p].m, program_.states[p].v}) {
      if (moment.defined()) executor_.Zero(moment);
    }
  }
  if (const Tensor& state = program_.tensors.loss_scale; state.defined()) {
    executor_.Write<float>(state, 0, std::array{kFirstLossScale});
  }
  for (const DelayedScaling& scaling : program_.delayed_scaling) {
    executor_.Write<float>(scaling.scale, 0, std::vector<float>(static_cast<size_t>(scaling.scale.elements()), 1.0F));
  }
  if (const Tensor& table = program_.tensors.rope_table; table.defined()) {
    std::vector<float> values(static_cast<size_t>(table.elements()));
    FillRopeTable(values.data(), table.rows, table.cols, program_.spec.rope_theta);
    executor_.Write<float>(table, 0, values);
  }
}

void ModelState::InitializeWeight(size_t parameter, const FirstValues& values, bool on_all_cores) {
  const ParameterState& state = program_.states[parameter];
  std::optional<FirstCodes> codes;
  if (state.quantized()) codes.emplace(state, executor_);
  const bool needs_all = state.whole.defined() || codes;
  const Share& share = program_.shape.parameters[parameter].share;
  const int64_t n = share.elements();
  const int64_t begin = needs_all ? 0 : state.first / 4 * 4;
  const int64_t end = needs_all ? n : state.m.defined() ? state.first + state.m.elements() : begin;
  std::vector<float> buffer(static_cast<size_t>(std::min(end - begin, kInitChunk)));
  for (int64_t first = begin; first < end; first += kInitChunk) {
    const std::span<float> chunk = std::span(buffer).first(static_cast<size_t>(std::min(kInitChunk, end - first)));
    const auto fill = [&](int64_t from, int64_t to) {
      share.ForRuns(first + from, first + to, [&](int64_t element, int64_t whole, int64_t count) {
        values(parameter, whole, chunk.subspan(static_cast<size_t>(element - first), static_cast<size_t>(count)));
      });
    };
    if (on_all_cores) {
      ParallelFor(std::ssize(chunk), kGrain, fill);
    } else {
      fill(0, std::ssize(chunk));
    }
    SetElements(state, first, chunk);
    if (!codes) continue;
    std::vector<uint16_t> bits(chunk.size());
    ForElements(chunk.size(), [&](size_t i) { bits[i] = RoundedToBf16(chunk[i]); });
    codes->Write(first, bits);
  }
  if (codes) codes->WriteTo(executor_, state);
}

NormalNumbers ModelState::NumbersOf(size_t parameter) const {
  return {static_cast<uint64_t>(program_.spec.seed), kInitStream + static_cast<uint32_t>(parameter),
          static_cast<float>(program_.shape.init_std)};
}

void ModelState::FromSeed(size_t parameter, int64_t first, std::span<float> to) const {
  const Init init = program_.shape.parameters[parameter].init;
  if (init != Init::kNormal) return std::fill(to.begin(), to.end(), init == Init::kOnes ? 1.0F : 0.0F);
  const NormalNumbers numbers = NumbersOf(parameter);
  const int64_t last = first + std::ssize(to);
  for (int64_t quad = first / 4; 4 * quad < last; ++quad) {
    const FourNumbers normals = NormalQuad(numbers, quad);
    const int64_t end_of_quad = std::min(last, 4 * quad + 4);
    for (int64_t i = std::max(first, 4 * quad); i < end_of_quad; ++i) {
      to[static_cast<size_t>(i - first)] = normals.of[i - 4 * quad];
    }
  }
}

// Makes the weight on the device. Returns false if the device cannot, or if a weight is kept in another form than the
// one that computes.
bool ModelState::MadeOnDevice(size_t parameter) {
  const ParameterState& state = program_.states[parameter];
  const Share& share = program_.shape.parameters[parameter].share;
  if (program_.shape.parameters[parameter].init != Init::kNormal || state.quantized() || !share.is_whole() ||
      program_.recipe->master != Master::kNone) {
    return false;
  }
  const NormalNumbers numbers = NumbersOf(parameter);
  bool made = true;
  if (state.whole.defined()) made = executor_.WriteNormal(state.whole, 0, numbers);
  if (state.work.defined()) made = made && executor_.WriteNormal(state.work, state.first, numbers);
  return made;
}

void ModelState::SetWeight(size_t parameter, const ParameterPart& part, std::span<const float> values) {
  const ParameterState& state = program_.states[parameter];
  assert(state.work.defined() || state.master.defined());
  const int64_t first = part.first_row * program_.shape.parameters[parameter].cols;
  SetElements(state, first, values);
}

std::vector<float> ModelState::Weight(size_t parameter, const ParameterPart& part) const {
  const ParameterState& state = program_.states[parameter];
  const int64_t cols = program_.shape.parameters[parameter].cols;
  const int64_t first = part.first_row * cols;
  const int64_t count = part.rows * cols;
  if (state.quantized() && !state.master.defined()) return ReadQuantized(executor_, state.rows, first, count);
  if (!state.master.defined() || state.master.dtype != DType::kI16) {
    return Elements(state.master.defined() ? state.master : state.work, first, count);
  }
  const auto work = executor_.Read<uint16_t>(state.work, first, count);
  const auto rest = executor_.Read<int16_t>(state.master, first, count);
  std::vector<float> values(work.size());
  std::transform(work.begin(), work.end(), rest.begin(), values.begin(), JoinMaster);
  return values;
}

std::vector<float> ModelState::Gradient(size_t parameter, const ParameterPart& part) const {
  const Tensor rows = program_.states[parameter].gradient.Rows(part.first_row, part.rows);
  const Tensor& scale = program_.tensors.loss_scale;
  const float factor = scale.defined() ? 1 / executor_.Element<float>(scale) : 1;
  std::vector<float> values = Elements(rows, 0, rows.elements());
  for (float& value : values) value *= factor;
  return values;
}

std::vector<float> ModelState::Logits() const {
  return Elements(program_.tensors.logits, 0, program_.tensors.logits.elements());
}

double ModelState::Loss() const { return executor_.Element<float>(program_.tensors.loss); }

int64_t ModelState::SkippedSteps() const {
  const Tensor& state = program_.tensors.loss_scale;
  return state.defined() ? static_cast<int64_t>(executor_.Element<float>(state, 2)) : 0;
}

}  // namespace ridgeline::engine
