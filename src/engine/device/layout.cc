#include "engine/device/layout.h"

#include <algorithm>

#include "engine/memory/planner.h"

namespace ridgeline::engine {

Layout PlanLayout(const Trace& trace) {
  const auto& storages = trace.storages();
  const auto calls = static_cast<int32_t>(trace.calls().size());
  std::vector<int32_t> first(storages.size(), -1);
  std::vector<int32_t> last(storages.size(), -1);
  for (int32_t i = 0; i < calls; ++i) {
    const OpCall& call = trace.calls()[static_cast<size_t>(i)];
    for (const Tensor& tensor : call.tensors()) {
      if (!tensor.defined()) continue;
      const auto id = static_cast<size_t>(tensor.storage);
      if (first[id] < 0) first[id] = i;
      last[id] = i;
    }
  }

  // Persistent storages lie side by side at the bottom. They never move, so only temporaries need planning.
  Layout layout;
  layout.offsets.assign(storages.size(), 0);
  int64_t persistent_bytes = 0;
  std::vector<Lifetime> lifetimes;
  std::vector<size_t> ids;
  for (size_t id = 0; id < storages.size(); ++id) {
    if (storages[id].persistent) {
      layout.offsets[id] = persistent_bytes;
      persistent_bytes += AlignUp(storages[id].bytes);
    } else if (first[id] >= 0) {
      lifetimes.push_back({storages[id].bytes, first[id], last[id]});
      ids.push_back(id);
    }
  }
  MemoryPlan plan;
  if (!lifetimes.empty()) plan = PlanMemory(lifetimes, calls);
  for (size_t i = 0; i < ids.size(); ++i) layout.offsets[ids[i]] = persistent_bytes + plan.offsets[i];
  layout.slab_bytes = persistent_bytes + plan.slab_bytes;
  layout.live_peak_bytes = persistent_bytes + plan.live_peak_bytes;

  for (int c = 0; c < kCategoryCount; ++c) {
    layout.by_category[std::string(CategoryName(static_cast<Category>(c)))] = 0;
  }
  const auto count = [&](size_t id) {
    layout.by_category[std::string(CategoryName(storages[id].category))] += AlignUp(storages[id].bytes);
  };
  for (size_t id = 0; id < storages.size(); ++id) {
    if (storages[id].persistent) count(id);
  }
  for (size_t i = 0; i < ids.size(); ++i) {
    if (lifetimes[i].first <= plan.peak_call && lifetimes[i].last >= plan.peak_call) count(ids[i]);
  }
  layout.by_category["fragmentation"] = layout.slab_bytes - layout.live_peak_bytes;
  return layout;
}

}  // namespace ridgeline::engine
