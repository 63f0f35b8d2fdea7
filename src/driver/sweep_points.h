// A sweep's points, found by their ids and called by what varies among them.
#pragma once

#include <filesystem>
#include <string>
#include <unordered_map>
#include <vector>

#include "driver/progress.h"
#include "run/measurement.h"
#include "sweep/expand.h"
#include "sweep/sweep.h"

namespace ridgeline {

class SweepPoints {
 public:
  // Of this sweep, which must outlive it, with what is to be said of it. A relative checkpoint.dir becomes one below
  // `folder` (plan/plan.h). `trainer`: argv, where the sweep names none.
  SweepPoints(const Sweep& sweep, const std::filesystem::path& folder, const std::string& campaign = kDefaultCampaign,
              const std::vector<std::string>& trainer = {});

  const std::vector<std::string>& warnings() const { return warnings_; }

  const std::vector<Point>& all() const { return points_; }
  int64_t runs() const { return runs_; }              // of all of them: each has as many as it has repeats
  const Point* Find(const std::string& id) const;     // nullptr for a point that is none of them
  MeasurementKey KeyOf(const Point& point) const;     // what this run measures it as
  const MeasurementKey& key() const { return key_; }  // of those that no rule of the sweep speaks of
  std::string Label(const Point& point) const { return PointLabel(point.spec, varying_); }

 private:
  const Sweep& sweep_;
  const std::vector<std::string> trainer_;
  const MeasurementKey key_;
  std::vector<Point> points_;
  int64_t runs_ = 0;
  std::vector<std::string> warnings_;
  std::vector<const Field*> varying_;
  std::unordered_map<std::string, size_t> index_;
};

}  // namespace ridgeline
