// What is still to be run: points that become jobs, and jobs that are not handed over yet.
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

namespace ridgeline {

class Planner {
 public:
  // What it refers to must outlive it.
  Planner(const Sweep& sweep, const DriverOptions& options, const DriverParts& parts, const SweepPoints& points,
          Tally& tally);

  // To be called first: records the sweep, and learns what its points took before, in whichever run.
  void Begin();

  // That a point is predicted not to fit holds for what memory it was to have then: PlanAllBut judges it anew, whether
  // or not it is among the taken. Returns how many such points have that result.
  int64_t JudgeAnew();

  // Points that cannot fit: they have their results now.
  struct Skipped {
    int64_t points = 0;
    std::string why;
  };

  // Plans the points that are not among `taken`.
  Skipped PlanAllBut(std::set<std::string> taken);

  // Points to be planned once more, when nothing else waits to be handed over; then PlanAgain. So a sweep's repeats go
  // round: each point has had one before any has the next. `counted`: it was among those to be done before.
  // `not_before`: monotonic.
  void RunAgain(const Point& point, bool counted = true, int64_t not_before_ns = 0) {
    again_.push_back({point, counted, not_before_ns});
  }
  bool HasPointsAgain() const { return !again_.empty(); }
  void PlanAgain();  // those whose time has come

  // Jobs that wait to be handed over.
  bool empty() const { return pending_.empty(); }
  int64_t size() const { return pending_.size(); }
  void JobEnded(int64_t points) { pending_.JobEnded(points); }

  // How many runs a point has still to have, of which none is planned yet.
  int64_t RunsLeft(const Point& point) const;
  // For a job that has to be made again.
  const PlanOptions& options() const { return options_; }

  // The next of them, about to be an intent. REQUIRES: !empty().
  LiveJob Open();

 private:
  struct Again {
    Point point;
    bool counted;
    int64_t not_before_ns;
  };

  Skipped PlanPoints(const std::vector<Point>& points, const std::set<std::string>& counted);

  const Sweep& sweep_;
  const DriverParts& parts_;
  const SweepPoints& points_;
  Tally& tally_;
  PlanOptions options_;
  PendingJobs pending_;
  std::vector<Again> again_;
  std::set<std::string> warned_;
  std::map<std::string, std::string> judged_;  // points predicted not to fit, and by what (Store::PredictedNotToFit)
};

}  // namespace ridgeline
