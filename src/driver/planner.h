// What is still to be run: points that become jobs, and jobs that are not submitted yet.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "driver/driver.h"
#include "driver/live_job.h"
#include "driver/pending.h"
#include "driver/sweep_points.h"
#include "driver/tally.h"

namespace ridgeline::driver {

// The options of a plan that follow from those of a run. What the store knows is added: repeats, attempts and times.
plan::PlanOptions PlanOptionsOf(const DriverOptions& options);

class Planner {
 public:
  // The arguments must outlive this object.
  Planner(const sweep::Sweep& sweep, const DriverOptions& options, const DriverParts& parts, const SweepPoints& points,
          Tally& tally);

  // Must be called first. Records the sweep, and learns from the store how long points took in earlier runs.
  void Begin();

  // A prediction that a point does not fit holds for the memory of that time. Makes PlanAllBut judge such points again,
  // even if they are in `taken`. Returns how many points have such a result.
  int64_t JudgeAnew();

  // Points that cannot fit. Their results are recorded.
  struct Skipped {
    int64_t points = 0;
    std::string why;
  };

  // Plans the points that are not among `taken`. This and PlanAgain throw Interrupted if the run is asked to
  // stop, and must then not be called again.
  Skipped PlanAllBut(std::set<std::string> taken);

  // Plans this point once more by PlanAgain, when nothing else waits to be submitted. So repeats go in rounds: each
  // point has had one before any point has the next. `counted`: the tally already has this run as to do.
  // `not_before_ns`: monotonic.
  void RunAgain(const Point& point, bool counted = true, int64_t not_before_ns = 0) {
    again_.push_back({point, counted, not_before_ns});
  }
  bool HasPointsAgain() const { return !again_.empty(); }
  void PlanAgain();  // plans those that are due

  // Jobs that wait to be submitted.
  bool empty() const { return pending_.empty(); }
  int64_t size() const { return pending_.size(); }
  void JobEnded(int64_t points) { pending_.JobEnded(points); }
  // The first job that Open will open, or join others to. REQUIRES: !empty().
  const Job& Next() const { return pending_.Next(); }

  // The number of runs that a point still needs, for a point without planned runs.
  int64_t RunsLeft(const Point& point) const;
  // The options with which a job can be made again.
  const plan::PlanOptions& options() const { return options_; }

  // Returns the next job, which is about to be an intent. REQUIRES: !empty().
  LiveJob Open();

 private:
  struct Again {
    Point point;
    bool counted;
    int64_t not_before_ns;
  };

  Skipped PlanPoints(const std::vector<Point>& points, const std::set<std::string>& counted);

  const sweep::Sweep& sweep_;
  const DriverParts& parts_;
  const SweepPoints& points_;
  Tally& tally_;
  plan::PlanOptions options_;
  PendingJobs pending_;
  std::vector<Again> again_;
  std::set<std::string> warned_;
  // Points predicted not to fit, each with its prediction (Store::PredictedNotToFit).
  std::map<std::string, std::string> judged_;
};

}  // namespace ridgeline::driver
