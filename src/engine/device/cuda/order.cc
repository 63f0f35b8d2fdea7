#include "engine/device/cuda/order.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace ridgeline {
namespace {

// Whether both share a storage.
bool Share(std::span<const Tensor> tensors, std::span<const Tensor> others) {
  return std::ranges::any_of(tensors, [&](const Tensor& t) {
    return t.defined() && std::ranges::any_of(others, [&](const Tensor& other) { return other.storage == t.storage; });
  });
}

}  // namespace

size_t CountTogether(const Trace& trace, const Layout& layout, size_t first) {
  struct Range {
    int64_t begin, end;
  };
  const auto ranges = [&](std::span<const Tensor> tensors) {
    std::vector<Range> result;
    for (const Tensor& tensor : tensors) {
      if (!tensor.defined()) continue;
      const auto storage = static_cast<size_t>(tensor.storage);
      const int64_t begin = layout.offsets[storage];
      result.push_back({begin, begin + trace.storages()[storage].bytes});
    }
    return result;
  };
  const auto overlap = [](const std::vector<Range>& a, const std::vector<Range>& b) {
    return std::ranges::any_of(a, [&](const Range& x) {
      return std::ranges::any_of(b, [&](const Range& y) { return x.begin < y.end && y.begin < x.end; });
    });
  };
  std::vector<Range> touched;
  std::vector<Range> changed;
  const std::vector<OpCall>& calls = trace.calls();
  size_t next = first;
  for (; next < calls.size() && calls[next].op == calls[first].op; ++next) {
    const auto touches = ranges(calls[next].tensors());
    const auto changes = ranges(calls[next].tensors().subspan(calls[next].reads().size()));
    if (overlap(touches, changed) || overlap(changes, touched)) break;
    touched.insert(touched.end(), touches.begin(), touches.end());
    changed.insert(changed.end(), changes.begin(), changes.end());
  }
  return next - first;
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

}  // namespace ridgeline
