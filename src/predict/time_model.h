// Predicts how long points take. Bundles, the time left and the check of time limits all use it. Time is proportional
// to a point's relative cost; points that ended teach the seconds per unit of cost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ridgeline/run.h"

namespace ridgeline::predict {

// The cost of one repeat of a point, up to a factor: parameters * tokens of all its steps and all its processes.
double RelativeCost(const RunSpec& spec);

class TimeModel {
 public:
  // It learns from so many points, the latest ones.
  static constexpr size_t kRemembered = 1000;

  // Learns that a point of this cost took so long. Ignores zero or negative costs and durations.
  void Took(double cost, double seconds);

  // Learns a prediction for a point of this cost. Predictions count until a point has been measured.
  void Assume(double cost, double seconds);

  // Whether it goes by measured points.
  bool measured() const { return !samples_.empty(); }
  size_t samples() const { return samples_.size(); }

  // Seconds per unit of cost; 0 if unknown. It is the cost-weighted median over the remembered points. So one point
  // that hung does not move it, and cheap points, which mostly start and end, weigh little.
  double SecondsPerCost() const;

  // The factor within which 90 % of the remembered points lie; at least kFewSpread for fewer than kFew points. 1 if
  // nothing is known.
  static constexpr double kFewSpread = 2;
  static constexpr size_t kFew = 20;
  double Spread() const;

  // Seconds that a point of this cost takes, at most its time limit. If nothing is known, the time limit. limit_s = 0:
  // no limit. Returns 0 if there is neither knowledge nor a limit.
  double Seconds(double cost, double limit_s = 0) const;

  // How many of `costs`, from the first on, fit into so many seconds one after another, each at most its limit. At
  // least 1, and 1 if their time is unknown.
  size_t FitWithin(double seconds, std::span<const double> costs, double limit_s = 0) const;

  // Nanoseconds until `cost` is done, if `parallel` points run at once and those running now have run for running_ns in
  // all. 0 if unknown.
  int64_t LeftNs(double cost, int64_t running_ns, int64_t parallel) const;

 private:
  struct Sample {
    double cost;
    double seconds_per_cost;
  };
  void Add(std::vector<Sample>& to, double cost, double seconds);
  const std::vector<Sample>& known() const { return samples_.empty() ? assumed_ : samples_; }

  std::vector<Sample> assumed_;  // as samples_
  std::vector<Sample> samples_;  // at most kRemembered; then the oldest is overwritten
  size_t oldest_ = 0;
  mutable std::optional<double> seconds_per_cost_;  // of the current samples; nothing: not computed yet
};

}  // namespace ridgeline::predict
