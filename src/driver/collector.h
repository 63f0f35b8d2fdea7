// Collects what jobs left, and decides about each point that has ended: its result stands, its next repeat is measured,
// or it is run again. Also reports each end to the FaultWatch.
#pragma once

#include <cstdint>
#include <vector>

#include "collect/collect.h"
#include "driver/driver.h"
#include "driver/fault_watch.h"
#include "driver/job_table.h"
#include "driver/planner.h"
#include "driver/retry_policy.h"
#include "driver/room.h"
#include "driver/sweep_points.h"
#include "driver/tally.h"

namespace ridgeline::driver {

class Collector {
 public:
  // Why these jobs are collected. The submitter has reported a refusal once for all jobs, and a refusal says nothing
  // about nodes.
  enum class Why { kRan, kRefused };

  // The arguments must outlive this object. `room` may be filled in later.
  Collector(const sweep::Sweep& sweep, const DriverParts& parts, const SweepPoints& points, const LauncherRoom& room,
            JobTable& jobs, Planner& planner, Tally& tally, FaultWatch& faults)
      : parts_(parts),
        points_(points),
        room_(room),
        jobs_(jobs),
        planner_(planner),
        tally_(tally),
        faults_(faults),
        retries_(sweep.launch.retries) {}

  // Collects what these jobs left; `of` are the same jobs. Returns how many points ended.
  int64_t CollectJobs(const std::vector<collect::JobToCollect>& to_collect, const std::vector<LiveJob*>& of,
                      Why why = Why::kRan);

 private:
  void PointEnded(const collect::Collected& result, const MeasurementKey& measured_as, int64_t spent_ns, Why why);
  int64_t Now() const { return parts_.clock.MonotonicNs(); }

  const DriverParts& parts_;
  const SweepPoints& points_;
  const LauncherRoom& room_;
  JobTable& jobs_;
  Planner& planner_;
  Tally& tally_;
  FaultWatch& faults_;
  PointRetries retries_;
};

}  // namespace ridgeline::driver
