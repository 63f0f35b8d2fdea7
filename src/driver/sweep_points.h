// A sweep's points, found by their ids and named by the fields that vary.
#pragma once

#include <filesystem>
#include <string>
#include <unordered_map>
#include <vector>

#include "run/measurement.h"
#include "run/point_name.h"
#include "sweep/expand.h"
#include "sweep/sweep.h"

namespace ridgeline::driver {

class SweepPoints {
 public:
  // Expands this sweep, which must outlive this object, with its warnings. Puts a relative checkpoint.dir below
  // `folder` (plan/plan.h). `trainer`: argv if the sweep names no trainer.
  SweepPoints(const sweep::Sweep& sweep, const std::filesystem::path& folder,
              const std::string& campaign = kDefaultCampaign, const std::vector<std::string>& trainer = {});

  const std::vector<std::string>& warnings() const { return warnings_; }

  const std::vector<Point>& all() const { return points_; }
  int64_t runs() const { return runs_; }              // of all points: each has as many as its repeats
  const Point* Find(const std::string& id) const;     // nullptr if no point has this id
  MeasurementKey KeyOf(const Point& point) const;     // the key under which this run measures it
  const MeasurementKey& key() const { return key_; }  // of points that no rule of the sweep changes
  std::string NameOf(const Point& point) const { return PointName(point.spec, varying_); }

 private:
  const sweep::Sweep& sweep_;
  const std::vector<std::string> trainer_;
  const MeasurementKey key_;
  std::vector<Point> points_;
  int64_t runs_ = 0;
  std::vector<std::string> warnings_;
  std::vector<const Field*> varying_;
  std::unordered_map<std::string, size_t> index_;
};

}  // namespace ridgeline::driver
