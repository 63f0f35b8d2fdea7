// How long points take: the one clock of bundles, of the time left and of what a time limit is held against. Time goes
// as a point's relative cost; how many seconds a unit of cost takes is learnt from points that ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ridgeline/run.h"

namespace ridgeline {

// What one repeat of a point costs to run, up to a factor: parameters x tokens of all its steps, and of all its
// processes.
double RelativeCost(const RunSpec& spec);

class TimeModel {
 public:
  // How many points it goes by: the latest ones.
  static constexpr size_t kRemembered = 1000;

  // A point of this cost took so long. What cannot be, or cost nothing, teaches nothing.
  void Took(double cost, double seconds);

  // A point of this cost is predicted to take so long, which counts until one has been measured.
  void Assume(double cost, double seconds);

  // Some points were measured: what it says is theirs.
  bool measured() const { return !samples_.empty(); }
  size_t samples() const { return samples_.size(); }

  // What a unit of cost takes; 0: nothing is known. It is the rate at which the middle unit of the remembered cost was
  // done: one point that hung does not move it, and cheap points, which mostly start and end, weigh little.
  double SecondsPerCost() const;

  // Within this factor of that, either way, are 90 of 100 of the points it goes by; of few of them nobody can tell, and
  // it is kFewSpread at least. 1: nothing is known.
  static constexpr double kFewSpread = 2;
  static constexpr size_t kFew = 20;
  double Spread() const;

  // What a point of this cost takes: never more than its time limit, and that where nothing is known. limit_s 0: it has
  // none. 0: nothing says.
  double Seconds(double cost, double limit_s = 0) const;

  // How many of `costs`, from the first on, fit into so many seconds one after another, each no longer than its limit:
  // at least the first, and no more than that where nothing says how long they take.
  size_t FitWithin(double seconds, std::span<const double> costs, double limit_s = 0) const;

  // Until `cost` is done, where so many points run side by side and those that run now have run for running_ns in all.
  // 0: not known.
  int64_t LeftNs(double cost, int64_t running_ns, int64_t parallel) const;

 private:
  struct Sample {
    double cost;
    double seconds_per_cost;
  };
  void Add(std::vector<Sample>& to, double cost, double seconds);
  const std::vector<Sample>& known() const { return samples_.empty() ? assumed_ : samples_; }

  std::vector<Sample> assumed_;  // as samples_
  std::vector<Sample> samples_;  // kRemembered at most, then the oldest is written over
  size_t oldest_ = 0;
  mutable std::optional<double> seconds_per_cost_;  // of the samples as they are; nothing: not computed yet
};

}  // namespace ridgeline
