#include "engine/comm/communicator.h"

#include <algorithm>
#include <vector>

namespace ridgeline {
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
  SelfCommunicator() : Communicator(0, 1) {}
  std::string_view name() const override { return "self"; }
  void AllGather(const std::byte* mine, std::byte* full, int64_t bytes) override {
    if (mine != full) std::copy_n(mine, bytes, full);
  }
  void ReduceScatterMean(float* /*full*/, int64_t /*elements*/) override {}
};

class VirtualCommunicator final : public Communicator {
 public:
  explicit VirtualCommunicator(int64_t world) : Communicator(0, world) {}
  std::string_view name() const override { return "virtual"; }
  void AllGather(const std::byte* mine, std::byte* full, int64_t bytes) override {
    for (int64_t rank = mine == full ? 1 : 0; rank < world(); ++rank) {
      std::copy_n(mine, bytes, full + rank * bytes);
    }
  }
  void ReduceScatterMean(float* /*full*/, int64_t /*elements*/) override {}  // the mean of equal values is each of them
};

}  // namespace

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
std::unique_ptr<Communicator> MakeVirtualCommunicator(int64_t world) {
  return std::make_unique<VirtualCommunicator>(world);
}

}  // namespace ridgeline
