// A store's figures for Prometheus; docs/metrics.md describes each.
#pragma once

#include <string>

#include "metrics/exposition.h"
#include "metrics/live.h"
#include "store/store.h"

namespace ridgeline {

// How much there is of it, however much a store has.
inline constexpr int64_t kMostMetricPoints = 500;  // the last that ended well, of all sweeps
inline constexpr size_t kMostMetricSweeps = 100;   // the newest

// `now` is what LookNow saw of this store.
std::string MetricsOf(Store& store, const StoreNow& now, MetricsFormat format);

// Of no store, where there is none yet: what of us there is to say.
std::string MetricsOfNothing(MetricsFormat format);

}  // namespace ridgeline
