// Has what jobs left collected, and decides of each point that has ended: it stands, it is measured once more as it
// repeats, or it is run again; and what its end tells of the nodes.
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

namespace ridgeline {

class Collector {
 public:
  // Why these jobs are collected. What is refused was told once, for all of them, and says nothing of nodes.
  enum class Why { kRan, kRefused };

  // What it refers to must outlive it; `room` may be known later.
  Collector(const Sweep& sweep, const DriverParts& parts, const SweepPoints& points, const LauncherRoom& room,
            JobTable& jobs, Planner& planner, Tally& tally, FaultWatch& faults)
      : parts_(parts),
        points_(points),
        room_(room),
        jobs_(jobs),
        planner_(planner),
        tally_(tally),
        faults_(faults),
        retries_(sweep.launch.retries) {}

  // What these jobs left, `of` being the jobs it is of. Returns how many points ended.
  int64_t CollectJobs(const std::vector<JobToCollect>& to_collect, const std::vector<LiveJob*>& of,
                      Why why = Why::kRan);

 private:
  void PointEnded(const Collected& result, const MeasurementKey& measured_as, int64_t spent_ns, Why why);
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

}  // namespace ridgeline
