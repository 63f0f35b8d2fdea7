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
      in_parts_(program.spec.tensor_parallel > 1 || ShardRanks(program.spec) > 1),
      tensor_place_(MeshOf(program.spec).PlaceOf(program.rank, MeshAxis::kTensor)) {
  for (size_t p = 0; p < program.states.size(); ++p) {
    const Parameter& parameter = program.shape.parameters[p];
    const ParameterState& state = program.states[p];
    for (const ParameterPart& part : parameter.parts) {
      StateTensor any;
      any.shape = ShapeOfPart(parameter, part);
      any.first = state.first;
      any.offset = part.first_row * parameter.cols;
      any.share = parameter.share;
      if (ShardRanks(program.spec) > 1) any.in_parts = MeshAxis::kShard;
      if (!parameter.share.is_whole()) any.in_parts = any.in_parts | MeshAxis::kTensor;
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
        weight.in_parts = {};
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
    tensor.share = Share(other.tensor.rows, other.tensor.cols);
    tensor.high = other.tensor;
    tensors_.push_back(tensor);
  }
  // Wider elements come first, so that all tensors are aligned in a file that begins aligned.
  std::stable_sort(tensors_.begin(), tensors_.end(),
                   [](const StateTensor& a, const StateTensor& b) { return a.element_bytes() > b.element_bytes(); });
}

namespace {

// The elements of the rank's share of the larger tensor that it holds in high and master.
TrainingState::Range HeldOfShare(const StateTensor& tensor) {
  if (tensor.codes.codes.defined()) return {0, tensor.share.elements()};
  return {tensor.first, tensor.high.defined() ? tensor.high.elements() : 0};
}

TrainingState::Range Both(const TrainingState::Range& a, const TrainingState::Range& b) {
  const int64_t first = std::max(a.first, b.first);
  return {first, std::max<int64_t>(0, std::min(a.first + a.count, b.first + b.count) - first)};
}

// The elements of the share among elements [first, first + count) of the tensor.
TrainingState::Range InShare(const StateTensor& tensor, int64_t first, int64_t count) {
  const int64_t begin = tensor.share.Before(tensor.offset + first);
  return {begin, tensor.share.Before(tensor.offset + first + count) - begin};
}

// The elements of the tensor from the first to the last of these of the share.
TrainingState::Range InTensor(const StateTensor& tensor, const TrainingState::Range& range) {
  if (range.count == 0) return {};
  const int64_t first = tensor.share.InWhole(range.first) - tensor.offset;
  return {first, tensor.share.InWhole(range.first + range.count - 1) - tensor.offset + 1 - first};
}

// Calls fn as Share::ForRuns does, for elements [range.first, range.first + range.count) of the share, without those
// that an earlier rank of the group has, too.
template <typename Fn>
void ForRunsToRead(const Share& share, int64_t place, const TrainingState::Range& range, const Fn& fn) {
  const int64_t last = range.first + range.count;
  const bool is_first = place % share.copies == 0;
  const int64_t begin = is_first ? last : std::clamp(share.copied.first * share.cols(), range.first, last);
  const int64_t end =
      is_first ? last : std::clamp((share.copied.first + share.copied.count) * share.cols(), begin, last);
  share.ForRuns(range.first, begin, fn);
  share.ForRuns(end, last, fn);
}

}  // namespace

TrainingState::Range TrainingState::Held(const StateTensor& tensor) const {
  return InTensor(tensor, Both(InShare(tensor, 0, tensor.elements()), HeldOfShare(tensor)));
}

TrainingState::Range TrainingState::Needed(const StateTensor& tensor) const {
  if (tensor.codes.codes.defined()) return {};
  return tensor.whole.defined() ? InTensor(tensor, InShare(tensor, 0, tensor.elements())) : Held(tensor);
}

void TrainingState::Read(const StateTensor& tensor, int64_t first, std::span<std::byte> to) const {
  if (tensor.in_parts == MeshAxes()) return ReadShare(tensor, tensor.offset + first, to);
  const int64_t size = tensor.element_bytes();
  const int64_t count = static_cast<int64_t>(to.size()) / size;
  const Range mine = Both(HeldOfShare(tensor), InShare(tensor, first, count));
  std::vector<std::byte> held(static_cast<size_t>(mine.count * size));
  ReadShare(tensor, mine.first, held);
  // A rank sends in which bytes its elements lie, and then all bytes, with zeros where it has none.
  struct Extent {
    size_t begin, end;
  };
  const size_t packet = sizeof(Extent) + to.size();
  std::vector<std::byte> own(packet);
  Extent extent = {to.size(), 0};
  ForRunsToRead(tensor.share, tensor_place_, mine, [&](int64_t element, int64_t whole, int64_t n) {
    const auto at = static_cast<size_t>((whole - tensor.offset - first) * size);
    const auto bytes = static_cast<size_t>(n * size);
    std::memcpy(own.data() + sizeof extent + at, held.data() + (element - mine.first) * size, bytes);
    extent = {std::min(extent.begin, at), std::max(extent.end, at + bytes)};
  });
  std::memcpy(own.data(), &extent, sizeof extent);
  Communicator& holders = communicator_.Along(tensor.in_parts);
  std::vector<std::byte> all(packet * static_cast<size_t>(holders.world()));
  holders.AllGather(own.data(), all.data(), static_cast<int64_t>(packet));
  std::fill(to.begin(), to.end(), std::byte{0});
  for (size_t at = 0; at < all.size(); at += packet) {
    std::memcpy(&extent, all.data() + at, sizeof extent);
    for (size_t i = extent.begin; i < extent.end; ++i) to[i] |= all[at + sizeof extent + i];
  }
}

void TrainingState::ReadShare(const StateTensor& tensor, int64_t first, std::span<std::byte> to) const {
  if (to.empty()) return;
  if (tensor.codes.codes.defined()) return ReadCodes(tensor, first, to);
  const int64_t at = first - tensor.first;  // in the elements held here
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
  const std::vector<float> values = ReadQuantized(executor_, tensor.codes, first, count);
  for (size_t i = 0; i < values.size(); ++i) {
    const uint16_t value = ToBf16(values[i]);
    std::memcpy(to.data() + i * sizeof value, &value, sizeof value);
  }
}

void TrainingState::Write(const StateTensor& tensor, int64_t first, std::span<const std::byte> from) {
  const int64_t size = tensor.element_bytes();
  const Range mine = InShare(tensor, first, static_cast<int64_t>(from.size()) / size);
  std::vector<std::byte> own(static_cast<size_t>(mine.count * size));
  tensor.share.ForRuns(mine.first, mine.first + mine.count, [&](int64_t element, int64_t whole, int64_t n) {
    std::memcpy(own.data() + (element - mine.first) * size, from.data() + (whole - tensor.offset - first) * size,
                static_cast<size_t>(n * size));
  });
  WriteShare(tensor, mine.first, own);
}

void TrainingState::WriteShare(const StateTensor& tensor, int64_t first, std::span<const std::byte> from) {
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
    if (!with_master) {
      executor_.Write<std::byte>(tensor.whole, first, from);
    } else if (tensor.whole.dtype == DType::kF16) {
      executor_.Write<uint16_t>(tensor.whole, first, rounded(tensor.whole, floats(0, count)));
    } else {
      executor_.Write<uint16_t>(tensor.whole, first, split(floats(0, count)).first);
    }
  }
  const Range both = Both(HeldOfShare(tensor), {first, count});
  const int64_t begin = both.first;
  const int64_t end = begin + both.count;
  if (end == begin) return;
  const int64_t to = begin - tensor.first;
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
