#include "driver/sweep_points.h"

#include <utility>

#include "plan/plan.h"

namespace ridgeline {

SweepPoints::SweepPoints(const Sweep& sweep, const std::filesystem::path& folder, const MeasurementKey& measured_as)
    : varying_(VaryingFields(sweep)) {
  Expansion expansion;
  points_ = Expand(sweep, &expansion);
  warnings_ = std::move(expansion.warnings);
  PlaceCheckpointFiles(points_, folder, measured_as);
  for (size_t i = 0; i < points_.size(); ++i) index_.emplace(points_[i].id, i);
}

const Point* SweepPoints::Find(const std::string& id) const {
  const auto found = index_.find(id);
  return found == index_.end() ? nullptr : &points_[found->second];
}

}  // namespace ridgeline
