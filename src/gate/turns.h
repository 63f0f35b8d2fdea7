// Takes runs in turns: measures a sweep's points repeatedly, each run in a process of its own, with one build or
// another.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "regress/measurements.h"
#include "sweep/sweep.h"

namespace ridgeline::gate {

// The id of the point of this spec (canonical JSON), with one run instead of several.
std::string IdOfOneRun(const std::string& spec);

class Turns {
 public:
  // Uses the sweep's points with one run each. The database of the turns and their jobs lie in `folder`. It is not the
  // sweep's own database, so no history contains them. Throws Error for an invalid sweep.
  Turns(sweep::Sweep sweep, std::filesystem::path folder);

  size_t points() const { return trainers_.size(); }
  bool Has(const std::string& point_id) const { return trainers_.contains(point_id); }

  // Measures these points (all, if none is named) once, with the programs of `build`. For a definition's trainer, those
  // are the programs that it starts from there (trainers/build.h). Without a build, uses what the sweep names. `turn`
  // names the turn. A turn of that name that was taken before stays as it was, so that an interrupted caller can
  // resume. A point that fails for infrastructure reasons has no measurement. Throws Error(kUsage) if the build has no
  // such program, and Error(kInfrastructure) if the launcher is down. Returns false if it was interrupted.
  bool Take(const std::string& turn, const std::filesystem::path& build, const std::set<std::string>& point_ids);

  // Keeps all later runs on this node, and says so if the launcher cannot.
  void KeepTo(const std::string& node);

  // Reads the turn's results.
  std::vector<regress::MeasuredCell> Read(const std::string& turn);

 private:
  // Sets the sweep's trainers to those of this build.
  void UseBuild(const std::filesystem::path& build, sweep::Sweep& sweep) const;
  std::filesystem::path Database() const { return folder_ / "ridgeline.db"; }

  sweep::Sweep sweep_;
  std::filesystem::path folder_;
  std::map<std::string, std::string> trainers_;  // by the points' ids
};

// Makes the launcher put every point on this node, unless the sweep names a node or there is only one. Returns false if
// the launcher cannot.
bool KeepToNode(sweep::Launch& launch, const std::string& node);

// A separate folder in `folder` for turns of this purpose.
std::filesystem::path FolderOfTurns(const std::filesystem::path& folder, const std::string& name,
                                    const std::vector<std::string>& purpose);

}  // namespace ridgeline::gate
