// Where a traced program's storages lie: the plan, and the parts of the peak.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/device/trace.h"

namespace ridgeline::engine {

struct Layout {
  std::vector<int64_t> offsets;                // of each storage in the slab, in bytes
  int64_t slab_bytes = 0;                      // the planned peak
  int64_t live_peak_bytes = 0;                 // the largest sum of live bytes
  std::map<std::string, int64_t> by_category;  // live at the peak, and "fragmentation"; sums to slab_bytes
};

// A persistent storage lives throughout, a temporary one from its first call to its last. The same for every device.
Layout PlanLayout(const Trace& trace);

}  // namespace ridgeline::engine
