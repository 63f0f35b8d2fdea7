#include "engine/memory/planner.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <memory>
#include <numeric>
#include <utility>

namespace ridgeline::engine {
namespace {

constexpr double kGoodEnough = 1.01;
constexpr int kRepairs = 200;          // rounds of the last resort
constexpr size_t kRepairsUpTo = 1500;  // lifetimes; with more, a round costs too much

// The taken parts of the slab: spans of bytes in order that do not touch each other.
class Taken {
 public:
  bool empty() const { return spans_.empty(); }
  void Clear() { spans_.clear(); }

  void Add(int64_t begin, int64_t end) {
    const auto first = Reaching(begin);
    auto last = first;
    for (; last != spans_.end() && last->first <= end; ++last) {
      begin = std::min(begin, last->first);
      end = std::max(end, last->second);
    }
    if (first == last) {
      spans_.insert(first, {begin, end});
    } else {
      *first = {begin, end};
      spans_.erase(first + 1, last);
    }
  }

  // Returns the lowest offset, from `offset` on, at which so many bytes are free.
  int64_t FreeFrom(int64_t offset, int64_t bytes) {
    for (auto span = Reaching(offset); span != spans_.end() && span->first < offset + bytes; ++span) {
      offset = std::max(offset, span->second);
    }
    return offset;
  }

 private:
  using Spans = std::vector<std::pair<int64_t, int64_t>>;
  // Returns the first span that ends at the offset or behind it.
  Spans::iterator Reaching(int64_t offset) {
    if (spans_.empty() || spans_.back().second < offset) return spans_.end();
    return std::partition_point(spans_.begin(), spans_.end(), [&](const auto& span) { return span.second < offset; });
  }

  Spans spans_;
};

// The taken parts of the slab during each call. A segment tree (Bentley, 1977): its leaves are calls, and a node stands
// for all calls below it. A lifetime consists of a few nodes, and the nodes above them record it, too. So the cost of
// placing a tensor grows with the tree's height, not with the number of tensors that live at the same time: adjacent
// ones form one span.
class Timeline {
 public:
  explicit Timeline(int32_t calls) { Restart(calls); }

  // Makes the timeline as good as new, but keeps the memory of its nodes.
  void Restart(int32_t calls) {
    leaves_ = std::bit_ceil(static_cast<size_t>(std::max(calls, 1)));
    nodes_.resize(2 * leaves_);
    Clear();
  }

  size_t leaves() const { return leaves_; }

  void Clear() {
    for (Node& node : nodes_) {
      node.all_along.Clear();
      node.below.Clear();
    }
  }

  void Add(const Lifetime& life, int64_t begin, int64_t end) {
    ForEachPart(life, [&](Node& node) { node.all_along.Add(begin, end); });
    ForEachAbove(life, [&](Node& node) { node.below.Add(begin, end); });
  }

  // Returns the lowest offset at which so many bytes are free during the whole life.
  int64_t LowestFree(const Lifetime& life, int64_t bytes) {
    beside_.clear();
    const auto add = [&](Taken& taken) {
      if (!taken.empty()) beside_.push_back(&taken);
    };
    ForEachPart(life, [&](Node& node) {
      add(node.all_along);
      add(node.below);
    });
    ForEachAbove(life, [&](Node& node) { add(node.all_along); });
    int64_t offset = 0;
    // Asks one after another, until all agree.
    for (size_t agreed = 0, at = 0; agreed < beside_.size(); at = at + 1 == beside_.size() ? 0 : at + 1) {
      const int64_t free = beside_[at]->FreeFrom(offset, bytes);
      agreed = free == offset ? agreed + 1 : 1;
      offset = free;
    }
    return offset;
  }

 private:
  struct Node {
    Taken all_along;  // during all of its calls, and not recorded above
    Taken below;      // during some of them: recorded at nodes below
  };

  template <typename Visit>
  void ForEachPart(const Lifetime& life, Visit visit) {
    size_t left = leaves_ + static_cast<size_t>(life.first);
    size_t right = leaves_ + static_cast<size_t>(life.last) + 1;
    for (; left < right; left /= 2, right /= 2) {
      if (left % 2 == 1) visit(nodes_[left++]);
      if (right % 2 == 1) visit(nodes_[--right]);
    }
  }

  // Visits the nodes above its first and its last call: all nodes above its parts, and some below them.
  template <typename Visit>
  void ForEachAbove(const Lifetime& life, Visit visit) {
    size_t first = (leaves_ + static_cast<size_t>(life.first)) / 2;
    size_t last = (leaves_ + static_cast<size_t>(life.last)) / 2;
    for (; first > 0; first /= 2, last /= 2) {
      visit(nodes_[first]);
      if (last != first) visit(nodes_[last]);
    }
  }

  size_t leaves_ = 0;
  std::vector<Node> nodes_;  // from 1, the root; the children of i are 2 i and 2 i + 1
  std::vector<Taken*> beside_;
};

constexpr size_t kMostKeptLeaves = 8192;  // memory of a longer timeline is freed

// A thread keeps its timeline for the next plan. Otherwise planning one step after another would spend most of its time
// on allocating nodes.
class KeptTimeline {
 public:
  explicit KeptTimeline(int32_t calls) : timeline_(kept_ ? std::move(kept_) : std::make_unique<Timeline>(calls)) {
    timeline_->Restart(calls);
  }
  KeptTimeline(const KeptTimeline&) = delete;
  KeptTimeline& operator=(const KeptTimeline&) = delete;
  ~KeptTimeline() {
    if (timeline_->leaves() <= kMostKeptLeaves) kept_ = std::move(timeline_);
  }
  Timeline& operator*() { return *timeline_; }

 private:
  static thread_local std::unique_ptr<Timeline> kept_;
  std::unique_ptr<Timeline> timeline_;
};
thread_local std::unique_ptr<Timeline> KeptTimeline::kept_;

// First fit: each lifetime, in the given order, takes the lowest offset that is free during its whole life.
class Placement {
 public:
  Placement(std::span<const Lifetime> lifetimes, Timeline& timeline)
      : lifetimes_(lifetimes), offsets_(lifetimes.size(), 0), placed_(timeline) {}

  // Gives up and returns `enough` once the slab reaches that size.
  int64_t Place(const std::vector<int32_t>& order, int64_t enough) {
    placed_.Clear();
    int64_t slab = 0;
    top_ = -1;
    for (const int32_t index : order) {
      const Lifetime& life = lifetimes_[static_cast<size_t>(index)];
      const int64_t bytes = AlignUp(life.bytes);
      const int64_t offset = bytes > 0 ? placed_.LowestFree(life, bytes) : 0;
      offsets_[static_cast<size_t>(index)] = offset;
      if (bytes > 0) placed_.Add(life, offset, offset + bytes);
      if (offset + bytes > slab) {
        slab = offset + bytes;
        top_ = index;
        if (slab >= enough) return enough;
      }
    }
    return slab;
  }

  const std::vector<int64_t>& offsets() const { return offsets_; }
  int32_t top() const { return top_; }  // the lifetime that reaches the end of the slab

 private:
  std::span<const Lifetime> lifetimes_;
  std::vector<int64_t> offsets_;
  Timeline& placed_;
  int32_t top_ = -1;
};

void FindPeak(std::span<const Lifetime> lifetimes, int32_t calls, MemoryPlan& plan) {
  std::vector<int64_t> change(static_cast<size_t>(calls) + 1, 0);
  for (const Lifetime& life : lifetimes) {
    change[static_cast<size_t>(life.first)] += AlignUp(life.bytes);
    change[static_cast<size_t>(life.last) + 1] -= AlignUp(life.bytes);
  }
  int64_t live = 0;
  for (int32_t call = 0; call < calls; ++call) {
    live += change[static_cast<size_t>(call)];
    if (live > plan.live_peak_bytes) {
      plan.live_peak_bytes = live;
      plan.peak_call = call;
    }
  }
}

}  // namespace

int64_t AlignUp(int64_t bytes) { return (bytes + kSlabAlignment - 1) / kSlabAlignment * kSlabAlignment; }

MemoryPlan PlanMemory(std::span<const Lifetime> lifetimes, int32_t calls) {
  MemoryPlan plan;
  FindPeak(lifetimes, calls, plan);
  plan.slab_bytes = std::numeric_limits<int64_t>::max();
  const auto good_enough = static_cast<int64_t>(static_cast<double>(plan.live_peak_bytes) * kGoodEnough);

  KeptTimeline timeline(calls);
  Placement placement(lifetimes, *timeline);
  std::vector<int32_t> best_order;
  const auto attempt = [&](const std::vector<int32_t>& order, int64_t enough) {
    const int64_t slab = placement.Place(order, enough);
    if (slab < plan.slab_bytes) {
      plan.slab_bytes = slab;
      plan.offsets = placement.offsets();
      best_order = order;
    }
    return plan.slab_bytes <= good_enough;
  };

  // The longest life goes first: what a layer saves for its backward pass nests like a stack, and nested lives that are
  // placed outermost first leave no holes. Then by size, and by size x life.
  const auto life = [&](int32_t i) {
    const Lifetime& l = lifetimes[static_cast<size_t>(i)];
    return static_cast<double>(l.last - l.first + 1);
  };
  const auto size = [&](int32_t i) { return static_cast<double>(lifetimes[static_cast<size_t>(i)].bytes); };
  std::vector<int32_t> order(lifetimes.size());
  const auto sorted_by = [&](auto key) {
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return key(a) > key(b); });
    return order;
  };
  if (attempt(sorted_by([&](int32_t i) { return std::pair(life(i), size(i)); }), plan.slab_bytes)) return plan;
  if (attempt(sorted_by([&](int32_t i) { return std::pair(size(i), life(i)); }), plan.slab_bytes)) return plan;
  if (attempt(sorted_by([&](int32_t i) { return std::pair(size(i) * life(i), 0.0); }), plan.slab_bytes)) return plan;

  // The last resort, for small programs: again and again, move the lifetime that reaches the slab's end to the front.
  if (lifetimes.size() > kRepairsUpTo) return plan;
  order = best_order;
  constexpr int64_t kToItsEnd = std::numeric_limits<int64_t>::max();
  placement.Place(order, kToItsEnd);
  for (int round = 0; round < kRepairs; ++round) {
    const auto at = std::find(order.begin(), order.end(), placement.top());
    if (at == order.end() || at == order.begin()) break;
    std::rotate(order.begin(), at, at + 1);
    if (attempt(order, kToItsEnd)) break;
  }
  return plan;
}

}  // namespace ridgeline::engine
