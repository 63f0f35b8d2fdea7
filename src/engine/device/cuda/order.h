// The freedom in a trace's order: which calls may run at once, and which may run in the place of another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/device/layout.h"
#include "engine/device/trace.h"

namespace ridgeline::engine {

// The bytes of the slab that some calls touch, and those that they change. (Storages with disjoint lifetimes may share
// bytes.)
class SlabBytes {
 public:
  SlabBytes(const Trace& trace, const Layout& layout) : trace_(&trace), layout_(&layout) {}

  void Add(const OpCall& call);
  // Whether neither changes what the other touches. Then they may run at once.
  bool LeavesAlone(const SlabBytes& other) const;

 private:
  struct Range {
    int64_t begin, end;
  };
  static bool Overlap(std::span<const Range> a, std::span<const Range> b);
  void AddRanges(std::span<const Tensor> tensors, std::vector<Range>& to) const;

  const Trace* trace_;
  const Layout* layout_;
  std::vector<Range> touched_, changed_;
};

// The number of calls from `first` on that belong to the same op and touch no byte that another of them changes.
size_t CountTogether(const Trace& trace, const Layout& layout, size_t first);

// Finds out what the calls of a step must wait for, if some of them run on a second stream. Both streams keep the
// trace's order. Takes the calls in that order.
class SecondStream {
 public:
  // A call on the second stream. Returns its number there.
  size_t Beside(SlabBytes bytes);
  // A call on the first stream. Returns the number of the last call beside it that must have ended before; none if
  // there is none, or if an earlier call has waited for it.
  std::optional<size_t> WaitOf(const SlabBytes& bytes);

 private:
  struct Running {
    size_t number;
    SlabBytes bytes;
  };
  size_t next_ = 0;
  std::vector<Running> running_;  // which no call has waited for, in their order
};

// Where the calls of a trace may run. The trace must outlive the object. Only the trace decides, not the plan's layout.
class TraceOrder {
 public:
  explicit TraceOrder(const Trace& trace);

  // Whether call `moved` has the same effect at the place of call `to`, before or after it, apart from what the two do
  // to each other. Then nothing between them touches what it writes or changes what it reads, and all of that is in
  // memory there. Ignores its scratch.
  bool MayMove(size_t moved, size_t to) const;

 private:
  bool Lives(const Tensor& tensor, size_t at) const;

  const Trace& trace_;
  std::vector<size_t> first_, last_;  // the first and the last call that touches each storage
};

}  // namespace ridgeline::engine
