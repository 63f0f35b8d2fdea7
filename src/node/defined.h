// A point of a trainer that a definition describes (src/trainers): its processes here, what they are started with, and
// what their logs come to.
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

namespace ridgeline {

class DefinedTrainer {
 public:
  // Throws Error(kInvalidInput) where the job's definition is wrong.
  explicit DefinedTrainer(const Job& job);
  // The same, where the job's definition is read already.
  DefinedTrainer(const Job& job, std::shared_ptr<const Trainer> trainer);

  const Trainer& trainer() const { return *trainer_; }
  bool KeepsContract() const { return trainer_->result == Trainer::Result::kContract; }
  // The program, or Slurm, starts what runs on others.
  bool RunsOnFirstNodeAlone() const;

  std::vector<RankProcess> ProcessesHere(const RunSpec& spec, const Nodes& nodes, const std::vector<int>& cores) const;

  // What stands before its command where srun starts its ranks; else nothing.
  std::vector<std::string> Srun(const RunSpec& spec, const Nodes& nodes) const;
  // What `process` is started with, but for that. `spec`: as the node has it. Throws Error(kInvalidInput) where the
  // node's environment lacks what the definition names.
  Invoked InvokedFor(const RunSpec& spec, const RankProcess& process, const Nodes& nodes,
                     const PointPlace& place) const;

  // What the run said here. `logs`: those of the processes here, in order. `file`: the one that
  // it writes metrics into. `arrivals`: how the first of `logs` grew;
  // null: nobody saw it.
  Reading Read(const RunSpec& spec, const std::vector<std::filesystem::path>& logs, const Watched& watched,
               const WrittenFile& file, const Arrivals* arrivals) const;
  // What is known of the run beside what it said.
  static void AddFacts(const RunSpec& spec, const Invoked& invoked, RunResult& result);

 private:
  ProcessPlace PlaceOf(const RunSpec& spec, const RankProcess& process, const Nodes& nodes,
                       const PointPlace& place) const;

  const Job& job_;
  const std::shared_ptr<const Trainer> trainer_;
  std::map<std::string, std::string> environment_;  // of a process of it, but for what the definition adds
};

// Looks on while a defined trainer runs: how far it is, which it says in its log, and what its processes hold.
class RunFollower {
 public:
  // Its steps are counted in `log`, and said in the file `progress`. Where others look on, too, it says them there
  // unless another does; `first` does in any case.
  RunFollower(const Trainer& trainer, const RunSpec& spec, std::filesystem::path log, std::filesystem::path progress,
              bool first, ProcessTree& tree, const Clock& clock, const Nvml& (*load)() = LoadNvml);
  RunFollower(const RunFollower&) = delete;
  RunFollower& operator=(const RunFollower&) = delete;

  void Look();
  // Of a definition that times lines as they arrive: how the log grew. It has ended. Null of any other.
  const Arrivals* FinishArrivals();
  int64_t peak_bytes() const { return peak_bytes_; }
  int64_t device_peak_bytes() const { return device_peak_bytes_; }  // of one GPU; 0: nobody knows

 private:
  // A series whose values are counted.
  struct Counted {
    const Metric* metric = nullptr;
    std::optional<std::string> rank;  // whose values these are: the first that printed one
    int64_t values = 0;
  };

  void ReadOn();
  void Value(const LineValue& said);

  std::vector<Counted> counted_;
  LineMetrics metrics_;  // of `counted_`, in its order
  const RunSpec& spec_;
  const double tokens_per_step_;
  const std::filesystem::path log_;
  const std::filesystem::path progress_;
  bool says_steps_;
  ProcessTree& tree_;
  const Clock& clock_;
  LogLines lines_;
  int64_t read_bytes_ = 0;
  int64_t steps_done_ = 0;
  int64_t steps_said_ = 0;
  double tokens_per_s_ = 0;
  int64_t peak_bytes_ = 0;
  int64_t device_peak_bytes_ = 0;
  std::optional<DeviceMemory> device_memory_;  // of a run that uses GPUs
  std::optional<LogGrowth> growth_;            // of a definition that times lines as they arrive
  int64_t next_sample_ns_ = 0;
};

}  // namespace ridgeline
