// A store's figures for Prometheus; docs/metrics.md describes each.
#pragma once

#include <string>

#include "metrics/exposition.h"
#include "metrics/live.h"
#include "store/store.h"

namespace ridgeline::metrics {

// Limits on the figures, however large a store is.
inline constexpr int64_t kMostMetricPoints = 500;  // the last that ended well, over all sweeps
inline constexpr size_t kMostMetricSweeps = 100;   // the newest

// `now`: LookNow's result for this store.
std::string MetricsOf(store::Store& store, const StoreNow& now, MetricsFormat format);

// Returns the metrics if there is no store yet: only those about Ridgeline itself.
std::string MetricsOfNothing(MetricsFormat format);

}  // namespace ridgeline::metrics
