// A job as one of its nodes sees it: the processes of a point that run here, their cores, their container and their
// files.
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
#include "node/node_reports.h"
#include "node/point_cores.h"
#include "node/preflight.h"
#include "node/process_tree.h"
#include "node/ranks.h"
#include "node/secret.h"
#include "node/starting.h"
#include "node/stop_signals.h"
#include "node/watch.h"
#include "run/job.h"

namespace ridgeline::node {

// The scheduler's name for this node.
std::string NodeName();

class NodeJob {
 public:
  // All arguments must outlive the object.
  NodeJob(const Job& job, const Nodes& nodes, const ExecOptions& options);
  NodeJob(const NodeJob&) = delete;
  NodeJob& operator=(const NodeJob&) = delete;

  bool Told() { return stop_.Reason() != StopReason::kNone; }

  bool IsOnSeveralNodes(const JobPoint& point) const {
    return nodes_.count > 1 && HasSeveralProcesses(point.spec) && !(defined_ && defined_->RunsOnFirstNodeAlone());
  }
  // Whether any part of the point runs on this node.
  bool HasPartIn(const JobPoint& point) const { return IsFirst() || IsOnSeveralNodes(point); }
  bool IsFirst() const { return nodes_.rank == 0; }

  // What prevents this node from running these points.
  std::optional<Unfit> WhyUnfit(const std::vector<const JobPoint*>& points,
                                const std::filesystem::path& job_file) const;
  // Why the point, which has a time limit, is not begun: its job's training plan may end before it does.
  std::optional<Unfit> WhyTooLate(const JobPoint& point) const;
  RunResult NotRun(const JobPoint& point, const Unfit& why) const;

  // Removes what an earlier attempt left, and writes the input of the processes here. Other nodes may share the folder.
  void Prepare(const JobPoint& point, const std::filesystem::path& dir) const;
  // Removes the files that the point needed while it ran, now that its result is on the disk. Keeps its output if it
  // did not end well, or if the job keeps logs. Files that cannot be removed do no harm. The first node also does it
  // for nodes that have ended their part. A node that ends later does it itself.
  void TidyUp(const JobPoint& point, RunStatus status) const;

 protected:
  ~NodeJob() = default;

  const DefinedTrainer* Defined() const { return defined_ ? &*defined_ : nullptr; }
  // The trainer whose logs give its figures; nullptr if it reports them itself.
  const trainers::Trainer* ReadTrainer() const {
    return defined_ && !defined_->KeepsContract() ? &defined_->trainer() : nullptr;
  }
  PartsOf PartsOfPoint(const JobPoint& point) const { return {job_.job_dir, point.id, nodes_.count, ReadTrainer()}; }
  bool IsContained() const { return container_.has_value(); }
  // Whether Slurm starts the trainer, so that it is no descendant of ours.
  bool IsStep() const;

  // The spec that the trainer gets.
  RunSpec SpecHere(const JobPoint& point) const;
  std::vector<RankProcess> ProcessesHere(const JobPoint& point) const { return ProcessesOn(nodes_, point.spec); }
  std::vector<std::string> LogsHere(const JobPoint& point) const { return LogsOf(point, nodes_); }
  // The logs of a defined trainer's processes on other nodes, if these share the folder.
  std::vector<std::filesystem::path> LogsElsewhere(const JobPoint& point, const std::filesystem::path& dir) const;
  WatchLimits LimitsOf(const JobPoint& point);
  // The time limit for all nodes to end; 0: no limit.
  int64_t LimitNs(const JobPoint& point) const;

  // What starts one of its processes; writes its files. `port`: where the ranks of one node meet.
  Starting StartOfRank(const JobPoint& point, const std::filesystem::path& dir, const RankProcess& rank,
                       const std::optional<ReservedPort>& port);
  // Adds the parts of the result that do not depend on how the point ended.
  RunResult Complete(const JobPoint& point, RunResult result) const;

  const Job& job_;
  const Nodes& nodes_;
  const ExecOptions& options_;
  const SystemClock clock_;
  StopSignals stop_;
  ProcessTree tree_;  // the running trainer's processes
  ContainerStarts starts_;
  const PointCores cores_;

 private:
  std::vector<RankProcess> ProcessesOn(const Nodes& node, const RunSpec& spec) const;
  // Returns none if none of its ranks could be started here.
  std::vector<RankProcess> RanksOf(const JobPoint& point, const Nodes& node) const;
  std::vector<std::string> LogsOf(const JobPoint& point, const Nodes& node) const;
  // The files that show how far each process's container is.
  std::vector<std::filesystem::path> SignsOf(const JobPoint& point, const Nodes& node,
                                             const std::filesystem::path& dir) const;
  void AddFilesOf(const JobPoint& point, const Nodes& node, bool ok, std::vector<std::filesystem::path>& files) const;
  const Container* Contained() const { return container_ ? &*container_ : nullptr; }

  RanksSecret secret_;
  std::optional<DefinedTrainer> defined_;
  std::optional<Container> container_;
};

std::vector<std::filesystem::path> PathsOf(const std::filesystem::path& dir, const std::vector<RankProcess>& ranks);

}  // namespace ridgeline::node
