// Parallel loops over the cores that this process may use (OpenMP).
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>

namespace ridgeline {

// Calls fn(begin, end) over [0, n), divided into at most one range per thread, none shorter than `grain`. The division
// depends on the number of threads. What fn computes for an index must not.
template <typename Fn>
void ParallelFor(int64_t n, int64_t grain, const Fn& fn) {
  const int64_t threads = std::min<int64_t>(omp_get_max_threads(), (n + grain - 1) / std::max<int64_t>(grain, 1));
  if (threads <= 1) {
    if (n > 0) fn(int64_t{0}, n);
    return;
  }
#pragma omp parallel num_threads(static_cast <int>(threads))
  {
    const int64_t id = omp_get_thread_num();
    const int64_t count = omp_get_num_threads();
    fn(n * id / count, n * (id + 1) / count);
  }
}

}  // namespace ridgeline
