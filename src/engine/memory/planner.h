// Turns lifetimes into offsets in one slab. All devices share it: the slab's size is the peak, known before anything is
// allocated.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ridgeline::engine {

inline constexpr int64_t kSlabAlignment = 256;  // bytes, of every offset: what GPUs need

// A storage that is live from call `first` to call `last`, both included.
struct Lifetime {
  int64_t bytes = 0;
  int32_t first = 0;
  int32_t last = 0;
};

struct MemoryPlan {
  std::vector<int64_t> offsets;  // of each lifetime, in bytes
  int64_t slab_bytes = 0;
  int64_t live_peak_bytes = 0;  // the largest sum of live (aligned) bytes: no plan can be smaller
  int32_t peak_call = 0;        // the call with that sum
};

int64_t AlignUp(int64_t bytes);

// Returns offsets such that no two storages overlap while both are live. `calls` is the number of calls. Deterministic.
// slab_bytes / live_peak_bytes is the plan's quality: the planner tries several placement orders until it is below
// 1.01.
MemoryPlan PlanMemory(std::span<const Lifetime> lifetimes, int32_t calls);

}  // namespace ridgeline::engine
