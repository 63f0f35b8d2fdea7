// What a sweep says under `launch:` that concerns Slurm.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/failure.h"

namespace ridgeline::slurm {

enum class ClientKind { kAuto, kAgent, kTools };

// What starts a container. kAuto: pyxis where the node's srun has it, else Apptainer.
enum class ContainerRuntime { kAuto, kPyxis, kApptainer };

// --signal: a signal some time before the time limit.
struct Warning {
  int signal = 0;  // 0: none
  int64_t lead_s = 0;
  bool batch_only = false;  // B: to the batch script's process alone
};

inline constexpr int64_t kWholeNode = -1;

// Empty, or 0: not said, so Slurm's own default holds.
struct Options {
  std::string partition, account, qos, reservation, constraint, nodelist, exclude;
  std::string cluster;  // --clusters, of one; empty: the one that this machine is of
  int64_t nodes = 0;    // in place of what the jobs ask for
  int64_t ntasks = 0;
  int64_t cpus = 0;
  int64_t memory_mib = 0;  // of a node; kWholeNode: all that it has
  std::string gpus;        // of a node, "8" or "h100:8"
  std::string gpu_bind;
  std::string gres;  // of a node, "nvme:1"; several joined by commas
  int64_t time_minutes = 0;
  bool exclusive = false;
  bool requeue = false;                       // by Slurm, under the same job id; else the driver submits a new attempt
  std::string signal;                         // as written; empty: what ParseWarning gives of the time to save
  std::string dependency;                     // "afterok:12,afterany:13": what each job waits for
  std::string mail;                           // an address, or "true": whoever submits
  std::vector<std::string> modules;           // loaded before anything else
  std::vector<std::string> prolog;            // shell lines, run before the job
  std::string container;                      // the image that its trainers run in
  std::vector<std::string> container_mounts;  // "/data", "/data:/in:ro"
  ContainerRuntime container_runtime = ContainerRuntime::kAuto;
  std::vector<std::string> sbatch;  // further options of sbatch, "--name=value"
  std::vector<std::string> srun;    // further options of srun, which then starts the job, or, --container-*, of pyxis
  ClientKind client = ClientKind::kAuto;
  int64_t throttle = 0;         // array tasks that run at once; 0: no limit
  int64_t max_queued = 10'000;  // jobs that are handed to Slurm at once; the rest follow as these end
  int64_t poll_interval_s = 1;  // at least, between two questions
};

// Whether pyxis and Apptainer can mount it under that name: commas part mounts for them, colons a mount's two sides,
// and enroot has a shell read them in double quotes.
bool CanBeMounted(std::string_view folder);

// How long to leave Slurm alone after a question that took so long: polling takes a hundredth of the time.
int64_t PollPauseMs(const Options& options, int64_t took_ms);

// `config` is the sweep's `launch:` mapping: `max_parallel` is the throttle, `slurm:` has the rest. Throws Failure
// naming the setting, what it must be, and for an unknown one which there are.
Options ReadOptions(const plugin::Json& config);

// The options of a job: the session's, or those of its own `config`, but for what the session has one of. Throws
// Failure as ReadOptions, and where the job would have another client.
Options OptionsOf(const plugin::Json& job, const Options& session);

// "[B:]SIGNAL[@SECONDS]", the signal a name with or without SIG, or a number; without seconds 60, as for sbatch.
// Throws Failure.
Warning ParseWarning(const std::string& text);

}  // namespace ridgeline::slurm
