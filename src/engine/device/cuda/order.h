// What of a trace's order is free: which calls may run at once, and which may run where another does.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/device/layout.h"
#include "engine/device/trace.h"

namespace ridgeline {

// How many calls from `first` on are the same op's, and touch no byte that another of them changes. (Storages that live
// one after the other may share their bytes.)
size_t CountTogether(const Trace& trace, const Layout& layout, size_t first);

// Where calls of a trace, which must outlive it, may run. The trace alone decides, not where a plan puts things.
class TraceOrder {
 public:
  explicit TraceOrder(const Trace& trace);

  // Whether call `moved` does the same where call `to` runs, before it or after, apart from what the two do to each
  // other: nothing between them touches what it writes or changes what it reads, and all of that has its place in
  // memory there. Its scratch is left aside.
  bool MayMove(size_t moved, size_t to) const;

 private:
  bool Lives(const Tensor& tensor, size_t at) const;

  const Trace& trace_;
  std::vector<size_t> first_, last_;  // calls that touch a storage
};

}  // namespace ridgeline
