#include "engine/step/training_state.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "engine/comm/mesh.h"
#include "engine/ops/optimizer.h"
#include "engine/step/quantized_weights.h"
#include "engine/tensor/bf16.h"
#include "engine/tensor/fp16.h"
#include "run/parallelism.h"

namespace ridgeline::engine {
namespace {

std::string StoredDType(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "F32";
    case DType::kBF16:
      return "BF16";
    case DType::kF16:
      return "F16";
    case DType::kI16:
      return "I16";
    case DType::kI32:
      return "I32";
    case DType::kU8:
      return "U8";
  }
  return {};
}

}  // namespace

int64_t StateTensor::elements() const {
  int64_t n = 1;
  for (const int64_t size : shape) n *= size;
  return n;
}

TrainingState::TrainingState(const StepProgram& program, Executor& executor, Communicator& communicator)
    : executor_(executor),
      communicator_(communicator),
      in_parts_(DataParallelRanks(program.spec) > 1 && program.spec.shard != ShardMode::kNone) {
  for (size_t p = 0; p < program.states.size(); ++p) {
    const Parameter& parameter = program.shape.parameters[p];
    const ParameterState& state = program.states[p];
    for (const ParameterPart& part : parameter.parts) {
      StateTensor any;
      any.shape = ShapeOfPart(parameter, part);
      any.first = state.first;
      any.offset = part.first_row * parameter.cols;
      any.in_parts = in_parts_;
      StateTensor weight = any;
      weight.name = part.name;
      weight.dtype = StoredDType(program.recipe->master == Master::kNone ? program.recipe->compute : DType::kF32);
      weight.is_weight = true;
      if (!state.quantized()) {
        weight.high = state.work;
        weight.master = state.master;
        weight.whole = state.whole;
      } else if (program.recipe->master != Master::kNone) {
        weight.high = state.master;
      } else {
        weight.codes = state.rows;
        weight.first = 0;
        weight.in_parts = false;
      }
      tensors_.push_back(weight);
      for (const auto& [suffix, moment] : {std::pair{".exp_avg", state.m}, {".exp_avg_sq", state.v}}) {
        StateTensor tensor = any;
        tensor.name = part.name + suffix;
        tensor.dtype = StoredDType(program.recipe->moments);
        tensor.high = moment;
        tensors_.push_back(tensor);
      }
    }
  }
  for (const NamedTensor& other : program.other_state) {
    StateTensor tensor;
    tensor.name = other.name;
    tensor.dtype = StoredDType(other.tensor.dtype);
    tensor.shape = {other.tensor.rows, other.tensor.cols};
    tensor.high = other.tensor;
    tensors_.push_back(tensor);
  }
  // Wider elements come first, so that all tensors are aligned in a file that begins aligned.
  std::stable_sort(tensors_.begin(), tensors_.end(),
                   [](const StateTensor& a, const StateTensor& b) { return a.element_bytes() > b.element_bytes(); });
}

namespace {

// Returns the range of the tensor, from its own beginning, that elements [first, first + count) of the larger tensor
// cover.
TrainingState::Range Within(const StateTensor& tensor, int64_t first, int64_t count) {
  const int64_t begin = std::clamp(first - tensor.offset, int64_t{0}, tensor.elements());
  const int64_t end = std::clamp(first + count - tensor.offset, begin, tensor.elements());
  return {begin, end - begin};
}

// The header of a rank's part of a range, as ranks send it.
struct PartHeader {
  int64_t begin = 0;  // elements, from the range's beginning
  int64_t count = 0;
};

}  // namespace

TrainingState::Range TrainingState::Held(const StateTensor& tensor) const {
  if (tensor.codes.codes.defined()) return {0, tensor.elements()};
  return Within(tensor, tensor.first, tensor.high.defined() ? tensor.high.elements() : 0);
}

TrainingState::Range TrainingState::Needed(const StateTensor& tensor) const {
  if (tensor.codes.codes.defined()) return {};
  return tensor.whole.defined() ? Range{0, tensor.elements()} : Held(tensor);
}

void TrainingState::Read(const StateTensor& tensor, int64_t first, std::span<std::byte> to) const {
  if (!tensor.in_parts) return ReadHeld(tensor, first, to);
  const int64_t size = tensor.element_bytes();
  const int64_t count = static_cast<int64_t>(to.size()) / size;
  const Range held = Held(tensor);
  const int64_t begin = std::clamp(held.first, first, first + count);
  const int64_t end = std::clamp(held.first + held.count, begin, first + count);
  const size_t packet = sizeof(PartHeader) + to.size();
  Communicator& holders = communicator_.Along(MeshAxis::kData);
  const auto world = static_cast<size_t>(holders.world());
  std::vector<std::byte> packets(packet * world);
  std::vector<std::byte> mine(packet);
  const PartHeader header{begin - first, end - begin};
  std::memcpy(mine.data(), &header, sizeof header);
  const auto bytes = static_cast<size_t>(header.count * size);
  if (bytes > 0) ReadHeld(tensor, begin, std::span(mine).subspan(sizeof header, bytes));
  holders.AllGather(mine.data(), packets.data(), static_cast<int64_t>(packet));
  for (size_t rank = 0; rank < world; ++rank) {
    PartHeader part;
    std::memcpy(&part, packets.data() + rank * packet, sizeof part);
    if (part.count == 0) continue;
    std::memcpy(to.data() + part.begin * size, packets.data() + rank * packet + sizeof part,
                static_cast<size_t>(part.count * size));
  }
}

void TrainingState::ReadHeld(const StateTensor& tensor, int64_t first, std::span<std::byte> to) const {
  if (to.empty()) return;
  if (tensor.codes.codes.defined()) return ReadCodes(tensor, first, to);
  const int64_t at = tensor.offset + first - tensor.first;  // in the elements held here
  const auto count = static_cast<int64_t>(to.size()) / tensor.element_bytes();
  assert(at >= 0 && at + count <= tensor.high.elements());
  if (!tensor.master.defined()) {
    executor_.Read<std::byte>(tensor.high, at, to);
  } else if (tensor.master.dtype == DType::kF32) {  // the master itself
    executor_.Read<std::byte>(tensor.master, at, to);
  } else {
    const auto high = executor_.Read<uint16_t>(tensor.high, at, count);
    const auto rest = executor_.Read<int16_t>(tensor.master, at, count);
    for (size_t i = 0; i < high.size(); ++i) {
      const float master = JoinMaster(high[i], rest[i]);
      std::memcpy(to.data() + i * sizeof master, &master, sizeof master);
    }
  }
}

void TrainingState::ReadCodes(const StateTensor& tensor, int64_t first, std::span<std::byte> to) const {
  const auto count = static_cast<int64_t>(to.size() / sizeof(uint16_t));
  const std::vector<float> values = ReadQuantized(executor_, tensor.codes, tensor.offset + first, count);
  for (size_t i = 0; i < values.size(); ++i) {
    const uint16_t value = ToBf16(values[i]);
    std::memcpy(to.data() + i * sizeof value, &value, sizeof value);
  }
}

void TrainingState::Write(const StateTensor& tensor, int64_t first, std::span<const std::byte> from) {
  const int64_t size = tensor.element_bytes();
  const auto count = static_cast<int64_t>(from.size()) / size;
  // Elements [begin, begin + n) of `from`.
  const auto bytes = [&](int64_t begin, int64_t n) {
    return from.subspan(static_cast<size_t>(begin * size), static_cast<size_t>(n * size));
  };
  const auto floats = [&](int64_t begin, int64_t n) {
    std::vector<float> values(static_cast<size_t>(n));
    std::memcpy(values.data(), bytes(begin, n).data(), values.size() * sizeof(float));
    return values;
  };
  // Converts masters to t's dtype, or to the work and the remainder of each.
  const auto rounded = [](const Tensor& t, const std::vector<float>& masters) {
    std::vector<uint16_t> work(masters.size());
    std::transform(masters.begin(), masters.end(), work.begin(), t.dtype == DType::kF16 ? ToFp16 : ToBf16);
    return work;
  };
  const auto split = [](const std::vector<float>& masters) {
    std::pair<std::vector<uint16_t>, std::vector<int16_t>> parts{masters.size(), masters.size()};
    for (size_t i = 0; i < masters.size(); ++i) SplitMaster(masters[i], parts.first[i], parts.second[i]);
    return parts;
  };
  const bool with_master = tensor.master.defined() || (tensor.whole.defined() && SizeOf(tensor.whole.dtype) != size);
  if (tensor.whole.defined()) {
    const int64_t to = tensor.offset + first;
    if (!with_master) {
      executor_.Write<std::byte>(tensor.whole, to, from);
    } else if (tensor.whole.dtype == DType::kF16) {
      executor_.Write<uint16_t>(tensor.whole, to, rounded(tensor.whole, floats(0, count)));
    } else {
      executor_.Write<uint16_t>(tensor.whole, to, split(floats(0, count)).first);
    }
  }
  const Range held = Held(tensor);
  const int64_t begin = std::max(first, held.first);
  const int64_t end = std::min(first + count, held.first + held.count);
  if (end <= begin) return;
  const int64_t to = tensor.offset + begin - tensor.first;
  if (!tensor.master.defined()) {
    executor_.Write<std::byte>(tensor.high, to, bytes(begin - first, end - begin));
    return;
  }
  const std::vector<float> masters = floats(begin - first, end - begin);
  if (tensor.master.dtype == DType::kF32) {
    executor_.Write<float>(tensor.master, to, masters);
    executor_.Write<uint16_t>(tensor.high, to, rounded(tensor.high, masters));
  } else {
    const auto [work, rest] = split(masters);
    executor_.Write<uint16_t>(tensor.high, to, work);
    executor_.Write<int16_t>(tensor.master, to, rest);
  }
}

}  // namespace ridgeline::engine
