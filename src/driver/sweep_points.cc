#include "driver/sweep_points.h"

#include <utility>

#include "plan/plan.h"
#include "sweep/launch.h"

namespace ridgeline::driver {

SweepPoints::SweepPoints(const sweep::Sweep& sweep, const std::filesystem::path& folder, const std::string& campaign,
                         const std::vector<std::string>& trainer)
    : sweep_(sweep),
      trainer_(trainer),
      key_{campaign, SetupOf(sweep.launch, trainer)},
      varying_(sweep::VaryingFields(sweep)) {
  sweep::Expansion expansion;
  points_ = sweep::Expand(sweep, &expansion);
  warnings_ = std::move(expansion.warnings);
  for (Point& point : points_) plan::PlaceCheckpointFiles(point, folder, KeyOf(point));
  for (const Point& point : points_) runs_ += point.spec.repeats;
  for (size_t i = 0; i < points_.size(); ++i) index_.emplace(points_[i].id, i);
}

MeasurementKey SweepPoints::KeyOf(const Point& point) const {
  const bool is_ours = point.spec.trainer == kOurTrainer;
  // A shortcut for nearly all sweeps, which may have a million points.
  if (is_ours && point.rules.empty() && sweep_.launch.ranks_per_node == 0) return key_;
  return {key_.campaign, SetupOf(sweep::LaunchOf(sweep_, point), trainer_)};
}

const Point* SweepPoints::Find(const std::string& id) const {
  const auto found = index_.find(id);
  return found == index_.end() ? nullptr : &points_[found->second];
}

}  // namespace ridgeline::driver
