// The freedom in a trace's order: which calls may run at once, and which may run in the place of another.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/device/layout.h"
#include "engine/device/trace.h"

namespace ridgeline {

// The number of calls from `first` on that belong to the same op and touch no byte that another of them changes.
// (Storages with disjoint lifetimes may share bytes.)
size_t CountTogether(const Trace& trace, const Layout& layout, size_t first);

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

}  // namespace ridgeline
