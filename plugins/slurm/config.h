// The settings for Slurm under a sweep's `launch:`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/failure.h"

namespace ridgeline::slurm {

enum class ClientKind { kAuto, kAgent, kTools };

// What starts a container. kAuto: pyxis if the node's srun has it, else Apptainer.
enum class ContainerRuntime { kAuto, kPyxis, kApptainer };

// --signal: a signal some time before the time limit.
struct Warning {
  int signal = 0;  // 0: none
  int64_t lead_s = 0;
  bool batch_only = false;  // B: only to the batch script's process
};

inline constexpr int64_t kWholeNode = -1;

// Empty or 0 means "not given", so Slurm's own default applies.
struct Options {
  std::string partition, account, qos, reservation, constraint, nodelist, exclude;
  std::string cluster;  // --clusters, of a single one; empty: the cluster of this machine
  int64_t nodes = 0;    // instead of what the jobs ask for; 0: not given
  int64_t ntasks = 0;
  int64_t cpus = 0;
  int64_t memory_mib = 0;  // for each node; kWholeNode: all its memory
  std::string gpus;        // for each node, "8" or "h100:8"
  std::string gpu_bind;
  std::string gres;  // for each node, "nvme:1"; several are joined by commas
  int64_t time_minutes = 0;
  bool exclusive = false;
  bool requeue = false;                       // by Slurm, under the same job id; else the driver submits a new attempt
  std::string signal;                         // as written; empty: derived from the job's time to save
  std::string dependency;                     // "afterok:12,afterany:13": what each job waits for
  std::string mail;                           // an address, or "true" for the submitting user
  std::vector<std::string> modules;           // loaded before anything else
  std::vector<std::string> prolog;            // shell lines, run before the job
  std::string container;                      // the image in which its trainers run
  std::vector<std::string> container_mounts;  // "/data", "/data:/in:ro"
  ContainerRuntime container_runtime = ContainerRuntime::kAuto;
  std::vector<std::string> sbatch;  // more options of sbatch, "--name=value"
  std::vector<std::string> srun;    // more options of srun, which then starts the job; or, as --container-*, of pyxis
  ClientKind client = ClientKind::kAuto;
  int64_t throttle = 0;         // array tasks that run at once; 0: no limit
  int64_t max_queued = 10'000;  // jobs that Slurm has at once; the rest follow as these end
  int64_t poll_interval_s = 1;  // least time between two questions
};

// Returns whether pyxis and Apptainer can mount the folder under that name. Commas separate mounts, colons the two
// sides of one, and enroot lets a shell read them in double quotes.
bool CanBeMounted(std::string_view folder);

// Returns how long to leave Slurm alone after a question that took `took_ms`. Polling takes a hundredth of the time.
int64_t PollPauseMs(const Options& options, int64_t took_ms);

// `config` is the sweep's `launch:` mapping. `max_parallel` is the throttle, and `slurm:` has the rest. Throws Failure
// that names the setting and what it must be, and for an unknown setting the known ones.
Options ReadOptions(const plugin::Json& config);

// Returns the options of a job: the session's, or those of its own `config`, except for settings that only the session
// has. Throws Failure as ReadOptions does, and if the job would have another client.
Options OptionsOf(const plugin::Json& job, const Options& session);

// Parses "[B:]SIGNAL[@SECONDS]". The signal is a name with or without SIG, or a number. The default is 60 seconds, as
// for sbatch. Throws Failure.
Warning ParseWarning(const std::string& text);

}  // namespace ridgeline::slurm
