#include "engine/memory/planner.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace ridgeline {
namespace {

constexpr double kGoodEnough = 1.01;
constexpr int kRepairs = 200;          // rounds of the last resort
constexpr size_t kRepairsUpTo = 1500;  // lifetimes: beyond, a round costs too much

// Indices of spans of calls, found by what they overlap: to place a tensor of a few calls costs what lives beside it,
// not what lives in a step of many layers and micro-steps. A span lies in the one or two buckets that it reaches of the
// first level whose buckets are longer than it.
class Timeline {
 public:
  explicit Timeline(int32_t calls) {
    for (int32_t shift = kFinest; shift == kFinest || (calls >> (shift - kStep)) > 0; shift += kStep) {
      levels_.push_back({shift, std::vector<std::vector<Entry>>(static_cast<size_t>(calls >> shift) + 1)});
    }
  }

  void Clear() {
    for (Level& level : levels_) {
      for (auto& bucket : level.buckets) bucket.clear();
    }
  }

  void Add(int32_t first, int32_t last, int32_t index) {
    const auto level = std::find_if(levels_.begin(), levels_.end() - 1,
                                    [&](const Level& l) { return last - first < (int32_t{1} << l.shift); });
    for (int32_t b = first >> level->shift; b <= last >> level->shift; ++b) {
      level->buckets[static_cast<size_t>(b)].push_back({first, last, index});
    }
  }

  // Each once.
  template <typename Visit>
  void ForEachOverlapping(int32_t first, int32_t last, Visit visit) const {
    for (const Level& level : levels_) {
      for (int32_t b = first >> level.shift; b <= last >> level.shift; ++b) {
        for (const Entry& entry : level.buckets[static_cast<size_t>(b)]) {
          const bool here = std::max(first, entry.first) >> level.shift == b;  // not in the other bucket, too
          if (here && entry.first <= last && entry.last >= first) visit(entry.index);
        }
      }
    }
  }

 private:
  static constexpr int32_t kFinest = 6;
  static constexpr int32_t kStep = 3;
  struct Entry {
    int32_t first, last, index;
  };
  struct Level {
    int32_t shift;
    std::vector<std::vector<Entry>> buckets;
  };
  std::vector<Level> levels_;
};

// First fit: each lifetime, in the given order, takes the lowest offset that is free all its life.
class Placement {
 public:
  Placement(std::span<const Lifetime> lifetimes, int32_t calls)
      : lifetimes_(lifetimes), offsets_(lifetimes.size(), 0), placed_(calls) {}

  int64_t Place(const std::vector<int32_t>& order) {
    placed_.Clear();
    int64_t slab = 0;
    top_ = -1;
    for (const int32_t index : order) {
      const Lifetime& life = lifetimes_[static_cast<size_t>(index)];
      const int64_t bytes = AlignUp(life.bytes);
      busy_.clear();
      placed_.ForEachOverlapping(life.first, life.last, [&](int32_t other) {
        const int64_t begin = offsets_[static_cast<size_t>(other)];
        busy_.emplace_back(begin, begin + AlignUp(lifetimes_[static_cast<size_t>(other)].bytes));
      });
      std::sort(busy_.begin(), busy_.end());
      int64_t offset = 0;
      for (const auto& [begin, end] : busy_) {
        if (begin - offset >= bytes) break;
        offset = std::max(offset, end);
      }
      offsets_[static_cast<size_t>(index)] = offset;
      if (bytes > 0) placed_.Add(life.first, life.last, index);
      if (offset + bytes > slab) {
        slab = offset + bytes;
        top_ = index;
      }
    }
    return slab;
  }

  const std::vector<int64_t>& offsets() const { return offsets_; }
  int32_t top() const { return top_; }  // the lifetime that reaches the slab's end

 private:
  std::span<const Lifetime> lifetimes_;
  std::vector<int64_t> offsets_;
  Timeline placed_;
  std::vector<std::pair<int64_t, int64_t>> busy_;
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

  Placement placement(lifetimes, calls);
  std::vector<int32_t> best_order;
  const auto attempt = [&](const std::vector<int32_t>& order) {
    const int64_t slab = placement.Place(order);
    if (slab < plan.slab_bytes) {
      plan.slab_bytes = slab;
      plan.offsets = placement.offsets();
      best_order = order;
    }
    return plan.slab_bytes <= good_enough;
  };

  // Longest life first: what a layer saves for its backward pass nests like a stack, and nested lives placed outermost
  // first leave no holes. Then by size, and by size x life.
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
  if (attempt(sorted_by([&](int32_t i) { return std::pair(life(i), size(i)); }))) return plan;
  if (attempt(sorted_by([&](int32_t i) { return std::pair(size(i), life(i)); }))) return plan;
  if (attempt(sorted_by([&](int32_t i) { return std::pair(size(i) * life(i), 0.0); }))) return plan;

  // Last resort, for small programs: move whatever reaches the slab's end to the front, again and again.
  if (lifetimes.size() > kRepairsUpTo) return plan;
  order = best_order;
  placement.Place(order);
  for (int round = 0; round < kRepairs; ++round) {
    const auto at = std::find(order.begin(), order.end(), placement.top());
    if (at == order.end() || at == order.begin()) break;
    std::rotate(order.begin(), at, at + 1);
    if (attempt(order)) break;
  }
  return plan;
}

}  // namespace ridgeline
