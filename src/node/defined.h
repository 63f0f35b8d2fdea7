// Runs a point of a trainer that a definition describes (src/trainers): its processes on this node, what starts them,
// and the results from their logs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/nvml.h"
#include "base/process.h"
#include "node/device_memory.h"
#include "node/log_growth.h"
#include "node/ranks.h"
#include "node/starting.h"
#include "node/watch.h"
#include "node/written_file.h"
#include "ridgeline/run.h"
#include "run/job.h"
#include "trainers/definition.h"
#include "trainers/ends.h"
#include "trainers/line_metrics.h"
#include "trainers/log_lines.h"
#include "trainers/reading.h"

namespace ridgeline::node {

class DefinedTrainer {
 public:
  // Throws Error(kInvalidInput) if the job's definition is invalid.
  explicit DefinedTrainer(const Job& job);
  // The same, if the job's definition has already been read.
  DefinedTrainer(const Job& job, std::shared_ptr<const trainers::Trainer> trainer);

  const trainers::Trainer& trainer() const { return *trainer_; }
  bool KeepsContract() const { return trainer_->result == trainers::Trainer::Result::kContract; }
  // Whether the program itself, or Slurm, starts the processes on other nodes.
  bool RunsOnFirstNodeAlone() const;

  std::vector<RankProcess> ProcessesHere(const RunSpec& spec, const Nodes& nodes, const std::vector<int>& cores) const;

  // The words before its command if srun starts its ranks; else nothing.
  std::vector<std::string> Srun(const RunSpec& spec, const Nodes& nodes) const;
  // How `process` is started, without those words. `spec`: as on this node. Throws Error(kInvalidInput) if the node's
  // environment lacks something that the definition names.
  trainers::Invoked InvokedFor(const RunSpec& spec, const RankProcess& process, const Nodes& nodes,
                               const PointPlace& place) const;

  // Reads the run's output on this node. `logs`: those of the processes here, in order. `file`: the file into which it
  // writes metrics. `arrivals`: how the first of `logs` grew; null: nobody watched it.
  trainers::Reading Read(const RunSpec& spec, const std::vector<std::filesystem::path>& logs, const Watched& watched,
                         const WrittenFile& file, const trainers::Arrivals* arrivals) const;
  // Adds facts about the run that are not in its output.
  static void AddFacts(const RunSpec& spec, const trainers::Invoked& invoked, RunResult& result);

 private:
  trainers::ProcessPlace PlaceOf(const RunSpec& spec, const RankProcess& process, const Nodes& nodes,
                                 const PointPlace& place) const;

  const Job& job_;
  const std::shared_ptr<const trainers::Trainer> trainer_;
  std::map<std::string, std::string> environment_;  // a process's environment, without what the definition adds
};

// Watches a running defined trainer: its progress, from its log, and the memory of its processes.
class RunFollower {
 public:
  // Counts steps in `log`, and writes the progress into the file `progress`. If other nodes watch, too, it writes it
  // only if no other does; `first` writes in any case.
  RunFollower(const trainers::Trainer& trainer, const RunSpec& spec, std::filesystem::path log,
              std::filesystem::path progress, bool first, ProcessTree& tree, const Clock& clock,
              const Nvml& (*load)() = LoadNvml);
  RunFollower(const RunFollower&) = delete;
  RunFollower& operator=(const RunFollower&) = delete;

  void Look();
  // How the log grew, for a definition that times lines as they arrive; null for any other. Call it when the run has
  // ended.
  const trainers::Arrivals* FinishArrivals();
  int64_t peak_bytes() const { return peak_bytes_; }
  int64_t device_peak_bytes() const { return device_peak_bytes_; }  // of one GPU; 0: unknown

 private:
  // A series whose values are counted.
  struct Counted {
    const trainers::Metric* metric = nullptr;
    std::optional<std::string> rank;  // the rank that these values are from: the first that printed one
    int64_t values = 0;
  };

  void ReadOn();
  void Value(const trainers::LineValue& said);

  std::vector<Counted> counted_;
  trainers::LineMetrics metrics_;  // metrics of `counted_`, in its order
  const RunSpec& spec_;
  const double tokens_per_step_;
  const std::filesystem::path log_;
  const std::filesystem::path progress_;
  bool says_steps_;
  ProcessTree& tree_;
  const Clock& clock_;
  trainers::LogLines lines_;
  int64_t read_bytes_ = 0;
  int64_t steps_done_ = 0;
  int64_t steps_said_ = 0;
  double tokens_per_s_ = 0;
  int64_t peak_bytes_ = 0;
  int64_t device_peak_bytes_ = 0;
  std::optional<DeviceMemory> device_memory_;  // for a run that uses GPUs
  std::optional<LogGrowth> growth_;            // for a definition that times lines as they arrive
  int64_t next_sample_ns_ = 0;
};

}  // namespace ridgeline::node
