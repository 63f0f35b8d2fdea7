#include "engine/device/cuda/order.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace ridgeline::engine {
namespace {

// Whether both share a storage.
bool Share(std::span<const Tensor> tensors, std::span<const Tensor> others) {
  return std::ranges::any_of(tensors, [&](const Tensor& t) {
    return t.defined() && std::ranges::any_of(others, [&](const Tensor& other) { return other.storage == t.storage; });
  });
}

}  // namespace

void SlabBytes::AddRanges(std::span<const Tensor> tensors, std::vector<Range>& to) const {
  for (const Tensor& tensor : tensors) {
    if (!tensor.defined()) continue;
    const auto storage = static_cast<size_t>(tensor.storage);
    const int64_t begin = layout_->offsets[storage];
    to.push_back({begin, begin + trace_->storages()[storage].bytes});
  }
}

void SlabBytes::Add(const OpCall& call) {
  AddRanges(call.tensors(), touched_);
  AddRanges(call.tensors().subspan(call.reads().size()), changed_);
}

bool SlabBytes::Overlap(std::span<const Range> a, std::span<const Range> b) {
  return std::ranges::any_of(a, [&](const Range& x) {
    return std::ranges::any_of(b, [&](const Range& y) { return x.begin < y.end && y.begin < x.end; });
  });
}

bool SlabBytes::LeavesAlone(const SlabBytes& other) const {
  return !Overlap(touched_, other.changed_) && !Overlap(changed_, other.touched_);
}

size_t CountTogether(const Trace& trace, const Layout& layout, size_t first) {
  const std::vector<OpCall>& calls = trace.calls();
  SlabBytes together(trace, layout);
  size_t next = first;
  for (; next < calls.size() && calls[next].op == calls[first].op; ++next) {
    SlabBytes bytes(trace, layout);
    bytes.Add(calls[next]);
    if (!bytes.LeavesAlone(together)) break;
    together.Add(calls[next]);
  }
  return next - first;
}

size_t SecondStream::Beside(SlabBytes bytes) {
  running_.push_back({next_, std::move(bytes)});
  return next_++;
}

std::optional<size_t> SecondStream::WaitOf(const SlabBytes& bytes) {
  // The second stream keeps its order, so whoever waits for one of its calls waits for all before it.
  const auto last = std::find_if(running_.rbegin(), running_.rend(),
                                 [&](const Running& beside) { return !bytes.LeavesAlone(beside.bytes); });
  if (last == running_.rend()) return std::nullopt;
  const size_t number = last->number;
  running_.erase(running_.begin(), last.base());
  return number;
}

TraceOrder::TraceOrder(const Trace& trace)
    : trace_(trace), first_(trace.storages().size(), trace.calls().size()), last_(trace.storages().size(), 0) {
  for (size_t i = 0; i < trace.calls().size(); ++i) {
    for (const Tensor& tensor : trace.calls()[i].tensors()) {
      if (!tensor.defined()) continue;
      const auto storage = static_cast<size_t>(tensor.storage);
      first_[storage] = std::min(first_[storage], i);
      last_[storage] = i;
    }
  }
}

bool TraceOrder::Lives(const Tensor& tensor, size_t at) const {
  const auto storage = static_cast<size_t>(tensor.storage);
  return trace_.storages()[storage].persistent || (first_[storage] <= at && at <= last_[storage]);
}

bool TraceOrder::MayMove(size_t moved, size_t to) const {
  const std::vector<OpCall>& calls = trace_.calls();
  const OpCall& call = calls[moved];
  for (size_t i = std::min(moved, to) + 1; i < std::max(moved, to); ++i) {
    const auto changed = calls[i].tensors().subspan(calls[i].reads().size());
    if (Share(call.writes(), calls[i].tensors()) || Share(call.reads(), changed)) return false;
  }
  const auto lives = [&](const Tensor& tensor) { return !tensor.defined() || Lives(tensor, to); };
  return std::ranges::all_of(call.reads(), lives) && std::ranges::all_of(call.writes(), lives);
}

}  // namespace ridgeline::engine
