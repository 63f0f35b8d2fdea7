#include "engine/comm/communicator.h"

#include <algorithm>
#include <vector>

#include "engine/tensor/bf16.h"
#include "engine/tensor/fp16.h"

namespace ridgeline::engine {
namespace {

template <typename T>
void AllReduceInRankOrder(Communicator& communicator, std::span<T> values, Reduction reduction) {
  std::vector<T> all(values.size() * static_cast<size_t>(communicator.world()));
  communicator.AllGather(reinterpret_cast<const std::byte*>(values.data()), reinterpret_cast<std::byte*>(all.data()),
                         static_cast<int64_t>(values.size_bytes()));
  for (size_t i = 0; i < values.size(); ++i) {
    T result = all[i];
    for (size_t at = i + values.size(); at < all.size(); at += values.size()) {
      result = reduction == Reduction::kSum ? result + all[at] : std::max(result, all[at]);
    }
    values[i] = result;
  }
}

class SelfCommunicator final : public Communicator {
 public:
  SelfCommunicator() : Communicator(0, Mesh()) {}
  std::string_view name() const override { return "self"; }
  void AllGather(const std::byte* mine, std::byte* full, int64_t bytes) override {
    if (mine != full) std::copy_n(mine, bytes, full);
  }
  void ReduceScatter(std::byte* /*full*/, DType /*dtype*/, int64_t /*elements*/, Reduction /*reduction*/) override {}
};

// Replaces each value with the sum of `equals` copies of it, added one after another.
template <typename T, typename From, typename To>
void SumOfEquals(T* values, int64_t elements, int64_t equals, const From& from, const To& to) {
  for (int64_t i = 0; i < elements; ++i) {
    const float one = from(values[i]);
    for (int64_t n = 1; n < equals; ++n) values[i] = to(from(values[i]) + one);
  }
}

void SumOfEquals(std::byte* values, DType dtype, int64_t elements, int64_t equals) {
  const auto same = [](float value) { return value; };
  auto* const narrow = reinterpret_cast<uint16_t*>(values);
  if (dtype == DType::kF32) {
    SumOfEquals(reinterpret_cast<float*>(values), elements, equals, same, same);
  } else if (dtype == DType::kF16) {
    SumOfEquals(narrow, elements, equals, FromFp16, ToFp16);
  } else {
    SumOfEquals(narrow, elements, equals, FromBf16, ToBf16);
  }
}

class VirtualCommunicator final : public Communicator {
 public:
  explicit VirtualCommunicator(const Mesh& mesh) : Communicator(0, mesh) {}
  std::string_view name() const override { return "virtual"; }
  void AllGather(const std::byte* mine, std::byte* full, int64_t bytes) override {
    for (int64_t rank = mine == full ? 1 : 0; rank < world(); ++rank) {
      std::copy_n(mine, bytes, full + rank * bytes);
    }
  }
  void ReduceScatter(std::byte* full, DType dtype, int64_t elements, Reduction reduction) override {
    if (reduction == Reduction::kSum) SumOfEquals(full, dtype, elements, world());  // their mean is each of them
  }
  void AllReduce(std::byte* values, DType dtype, int64_t elements, Reduction reduction) override {
    if (reduction != Reduction::kSum) return Communicator::AllReduce(values, dtype, elements, reduction);
    SumOfEquals(values, dtype, elements, world());
  }

 private:
  std::unique_ptr<Communicator> NewGroup(MeshAxes grouping) override {
    return std::make_unique<VirtualCommunicator>(Mesh({.shard = mesh().RanksAlong(grouping)}));
  }
};

}  // namespace

Communicator& Communicator::Along(MeshAxes axes) {
  const RankGroup group = mesh_.GroupOf(rank_, axes);
  if (group.ranks == world()) return *this;
  const std::lock_guard lock(groups_mutex_);
  std::unique_ptr<Communicator>& known = groups_[{group.stride, group.ranks}];
  if (known) return *known;
  if (group.ranks == 1) return *(known = MakeSelfCommunicator());
  for (const MeshAxes grouping : mesh_.Groupings()) {
    if (mesh_.GroupOf(rank_, grouping) == group) return *(known = NewGroup(grouping));
  }
  throw Error(ErrorKind::kInternal, "a mesh does not list one of its groups");
}

std::unique_ptr<Communicator> Communicator::NewGroup(MeshAxes grouping) {
  throw Error(ErrorKind::kInternal,
              std::string(name()) + " connects no groups of ranks along the axes " + AxesText(grouping));
}

void Communicator::AllReduce(std::byte* values, DType dtype, int64_t elements, Reduction reduction) {
  const int64_t part = elements / world();
  const int64_t bytes = part * SizeOf(dtype);
  ReduceScatter(values, dtype, part, reduction);
  AllGather(values + rank() * bytes, values, bytes);
}

void Communicator::AllReduce(std::span<double> values, Reduction reduction) {
  AllReduceInRankOrder(*this, values, reduction);
}
void Communicator::AllReduce(std::span<int64_t> values, Reduction reduction) {
  AllReduceInRankOrder(*this, values, reduction);
}
void Communicator::AllReduce(std::span<float> values, Reduction reduction) {
  AllReduceInRankOrder(*this, values, reduction);
}

void Communicator::Barrier() {
  int64_t here = 0;
  AllReduce(std::span(&here, 1), Reduction::kMax);
}

std::unique_ptr<Communicator> MakeSelfCommunicator() { return std::make_unique<SelfCommunicator>(); }
std::unique_ptr<Communicator> MakeVirtualCommunicator(const Mesh& mesh) {
  return std::make_unique<VirtualCommunicator>(mesh);
}

}  // namespace ridgeline::engine
