// A job as one of the nodes that run it sees it: what of each point is this node's, and the files that a point has
// here.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "node/defined.h"
#include "node/parts.h"
#include "node/point_cores.h"
#include "node/preflight.h"
#include "node/ranks.h"
#include "ridgeline/run.h"
#include "run/job.h"

namespace ridgeline {

// What the scheduler calls this node.
std::string NodeName();

// `job` and `nodes` must outlive it.
class NodeJob {
 public:
  // Throws Error(kInvalidInput) where the job's definition is wrong.
  NodeJob(const Job& job, const Nodes& nodes);

  bool IsFirst() const { return nodes_.rank == 0; }
  bool IsOnSeveralNodes(const JobPoint& point) const;
  // Whether anything of it runs on this node.
  bool HasPartIn(const JobPoint& point) const { return IsFirst() || IsOnSeveralNodes(point); }

  // What keeps this node from running these points.
  std::optional<Unfit> WhyUnfit(const std::vector<const JobPoint*>& points,
                                const std::filesystem::path& job_file) const;
  RunResult NotRun(const JobPoint& point, const Unfit& why) const;
  // Removes what an earlier attempt said of this node.
  void BeFit() const;

  // Removes what the point needed while it ran, now that its result is on the disk. What it said stays where it did not
  // end well, or where the job keeps logs. What cannot be removed does no harm. The first node does it for those that
  // have ended their part, too; who ends it later does so itself.
  void TidyUp(const JobPoint& point, RunStatus status) const;

 protected:
  // Removes what an earlier attempt left, and writes what the trainer reads. Other nodes may share the folder.
  void Prepare(const JobPoint& point, const std::filesystem::path& dir) const;
  // What is the same whatever became of the point.
  RunResult Complete(const JobPoint& point, RunResult result) const;
  // What its trainer is given.
  RunSpec SpecHere(const JobPoint& point) const;
  std::vector<RankProcess> ProcessesOn(const Nodes& node, const RunSpec& spec) const;
  std::vector<std::string> LogsHere(const JobPoint& point) const { return LogsOf(point, nodes_); }
  static std::vector<std::filesystem::path> PathsOf(const std::filesystem::path& dir,
                                                    const std::vector<RankProcess>& ranks);
  // Of a defined trainer's processes on other nodes, where these share the folder.
  std::vector<std::filesystem::path> LogsElsewhere(const JobPoint& point, const std::filesystem::path& dir) const;
  // The trainer whose logs are read for its figures; nullptr: none is.
  const Trainer* ReadTrainer() const;
  PartsOf PartsOfPoint(const JobPoint& point) const;
  // Within which all nodes must have ended; 0: there is no limit.
  int64_t LimitNs(const JobPoint& point) const;

  const Job& job_;
  const Nodes& nodes_;
  const SystemClock clock_;
  PointCores cores_;
  std::optional<DefinedTrainer> defined_;

 private:
  std::vector<std::string> LogsOf(const JobPoint& point, const Nodes& node) const;
  void AddFilesOf(const JobPoint& point, const Nodes& node, bool ok, std::vector<std::filesystem::path>& files) const;
};

}  // namespace ridgeline
