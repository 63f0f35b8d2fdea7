// Runs taken in turns: a sweep's points once more and once more, each run a process of its own, by this build or by
// that.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "regress/measurements.h"
#include "sweep/sweep.h"

namespace ridgeline {

// The point of this spec (canonical JSON) with one run where it had several.
std::string IdOfOneRun(const std::string& spec);

class Turns {
 public:
  // Of the sweep, its points with one run each. A database of the turns and their jobs lie in `folder`: it is none of
  // the sweep's own, so that no history has them. Throws Error for a sweep that is wrong.
  Turns(Sweep sweep, std::filesystem::path folder);

  size_t points() const { return trainers_.size(); }
  bool Has(const std::string& point_id) const { return trainers_.contains(point_id); }

  // Measures these points once (none named: all), by the programs of `build`, of a definition's trainer what it starts
  // from there (trainers/build.h); without a build, by what the sweep names. It is the turn of this name; one that was
  // taken before stays as it was, so that who was stopped goes on. What fails for want of infrastructure has no
  // measurement. Throws Error(kUsage) where the build has no such program, Error(kInfrastructure) where the launcher is
  // down. False where it was interrupted.
  bool Take(const std::string& turn, const std::filesystem::path& build, const std::set<std::string>& point_ids);

  // What is taken from now on is taken there.
  void KeepTo(const std::string& node);

  // What the turn came to.
  std::vector<MeasuredCell> Read(const std::string& turn);

 private:
  // The sweep with its trainers as this build has them.
  void UseBuild(const std::filesystem::path& build, Sweep& sweep) const;
  std::filesystem::path Database() const { return folder_ / "ridgeline.db"; }

  Sweep sweep_;
  std::filesystem::path folder_;
  std::map<std::string, std::string> trainers_;  // by the ids of the points
};

// Has the launcher put every point on this node, unless the sweep says a node itself, or there is but one.
void KeepToNode(Launch& launch, const std::string& node);

// A folder of its own for turns that are of this purpose, in ridgeline-out.
std::filesystem::path FolderOfTurns(const std::string& name, const std::vector<std::string>& purpose);

}  // namespace ridgeline
