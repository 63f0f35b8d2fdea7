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
  // Of this sweep, with what is to be said of it. A relative checkpoint.dir becomes one below `folder` (plan/plan.h).
  SweepPoints(const Sweep& sweep, const std::filesystem::path& folder, const MeasurementKey& measured_as);

  const std::vector<std::string>& warnings() const { return warnings_; }

  const std::vector<Point>& all() const { return points_; }
  const Point* Find(const std::string& id) const;  // nullptr for a point that is none of them
  std::string Label(const Point& point) const { return PointLabel(point.spec, varying_); }

 private:
  std::vector<Point> points_;
  std::vector<std::string> warnings_;
  std::vector<const Field*> varying_;
  std::unordered_map<std::string, size_t> index_;
};

}  // namespace ridgeline
