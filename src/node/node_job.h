// A job as one of its nodes has it: which processes of a point run here, on which cores, in which container, and which
// files are theirs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/port.h"
#include "node/container.h"
#include "node/defined.h"
#include "node/exec.h"
#include "node/parts.h"
#include "node/point_cores.h"
#include "node/preflight.h"
#include "node/process_tree.h"
#include "node/ranks.h"
#include "node/secret.h"
#include "node/starting.h"
#include "node/stop_signals.h"
#include "node/watch.h"
#include "run/job.h"

namespace ridgeline {

// What the scheduler calls this node.
std::string NodeName();

class NodeJob {
 public:
  // All of them must outlive it.
  NodeJob(const Job& job, const Nodes& nodes, const ExecOptions& options);
  NodeJob(const NodeJob&) = delete;
  NodeJob& operator=(const NodeJob&) = delete;

  bool Told() { return stop_.Reason() != StopReason::kNone; }

  bool IsOnSeveralNodes(const JobPoint& point) const {
    return nodes_.count > 1 && HasSeveralProcesses(point.spec) && !(defined_ && defined_->RunsOnFirstNodeAlone());
  }
  // Whether anything of it runs on this node.
  bool HasPartIn(const JobPoint& point) const { return IsFirst() || IsOnSeveralNodes(point); }
  bool IsFirst() const { return nodes_.rank == 0; }

  // What keeps this node from running these points.
  std::optional<Unfit> WhyUnfit(const std::vector<const JobPoint*>& points,
                                const std::filesystem::path& job_file) const;
  RunResult NotRun(const JobPoint& point, const Unfit& why) const;

  // Removes what an earlier attempt left, and writes what the processes here are given. Other nodes may share the
  // folder.
  void Prepare(const JobPoint& point, const std::filesystem::path& dir) const;
  // Removes what the point needed while it ran, now that its result is on the disk. What it said stays where it did not
  // end well, or where the job keeps logs. What cannot be removed does no harm. The first node does it for those that
  // have ended their part, too; who ends it later does so itself.
  void TidyUp(const JobPoint& point, RunStatus status) const;

 protected:
  ~NodeJob() = default;

  const DefinedTrainer* Defined() const { return defined_ ? &*defined_ : nullptr; }
  // Whose logs are read for its figures; nullptr: it says them itself.
  const Trainer* ReadTrainer() const { return defined_ && !defined_->KeepsContract() ? &defined_->trainer() : nullptr; }
  PartsOf PartsOfPoint(const JobPoint& point) const { return {job_.job_dir, point.id, nodes_.count, ReadTrainer()}; }
  bool IsContained() const { return container_.has_value(); }
  // Whether Slurm starts the trainer, so that it does not descend from us.
  bool IsStep() const;

  // What its trainer is given.
  RunSpec SpecHere(const JobPoint& point) const;
  std::vector<RankProcess> ProcessesHere(const JobPoint& point) const { return ProcessesOn(nodes_, point.spec); }
  std::vector<std::string> LogsHere(const JobPoint& point) const { return LogsOf(point, nodes_); }
  // Of a defined trainer's processes on other nodes, where these share the folder.
  std::vector<std::filesystem::path> LogsElsewhere(const JobPoint& point, const std::filesystem::path& dir) const;
  WatchLimits LimitsOf(const JobPoint& point);
  // Within which all nodes must have ended; 0: there is no limit.
  int64_t LimitNs(const JobPoint& point) const;

  // What one of its processes is started with, its files written. `port`: where the ranks of one node meet.
  Starting StartOfRank(const JobPoint& point, const std::filesystem::path& dir, const RankProcess& rank,
                       const std::optional<ReservedPort>& port);
  // What is the same whatever became of the point.
  RunResult Complete(const JobPoint& point, RunResult result) const;

  const Job& job_;
  const Nodes& nodes_;
  const ExecOptions& options_;
  const SystemClock clock_;
  StopSignals stop_;
  ProcessTree tree_;  // of the trainer that runs
  ContainerStarts starts_;
  const PointCores cores_;

 private:
  std::vector<RankProcess> ProcessesOn(const Nodes& node, const RunSpec& spec) const;
  // None where none of its ranks could be started here.
  std::vector<RankProcess> RanksOf(const JobPoint& point, const Nodes& node) const;
  std::vector<std::string> LogsOf(const JobPoint& point, const Nodes& node) const;
  // The files that say how far the container of each process is.
  std::vector<std::filesystem::path> SignsOf(const JobPoint& point, const Nodes& node,
                                             const std::filesystem::path& dir) const;
  void AddFilesOf(const JobPoint& point, const Nodes& node, bool ok, std::vector<std::filesystem::path>& files) const;
  const Container* Contained() const { return container_ ? &*container_ : nullptr; }

  RanksSecret secret_;
  std::optional<DefinedTrainer> defined_;
  std::optional<Container> container_;
};

std::vector<std::filesystem::path> PathsOf(const std::filesystem::path& dir, const std::vector<RankProcess>& ranks);

}  // namespace ridgeline
