// Launchers: how jobs get to where they run. The interface the driver speaks, and the one implementation behind it, a
// plugin loaded through include/ridgeline/launcher.h.
//
// Thread safety: call a launcher from one thread at a time. Every call may throw Error with the launcher's own words.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "run/job.h"

namespace ridgeline {

// What a launcher is told of a job: enough to submit it, nothing about training.
struct LaunchJob {
  std::string key;
  std::string sweep;
  std::filesystem::path job_file;
  std::filesystem::path job_dir;
  int64_t nodes = 1;
  int64_t cpus = 0;                // cores of a node the job needs; 0: whatever the launcher gives a job
  int64_t memory_bytes = 0;        // of a node; 0: no limit
  int64_t time_limit_s = 0;        // for the whole job; 0: none
  int64_t save_time_s = 0;         // it can be continued if it is told so long before its end; 0: it cannot
  bool own_trainer = false;        // it runs ridgeline-train, which needs nothing of another's image
  std::vector<std::string> exec;   // argv that runs the job on a node
  std::vector<std::string> avoid;  // nodes it shall not run on: others failed there
  Json config;                     // the `launch:` mapping as it holds for this job; null: as the launcher was loaded
};

// `program` is the `ridgeline` that runs the job: `program exec JOB.json`. The time limit is the sum of the points',
// of the times their ranks may take to meet, and of a margin for starting and stopping each.
LaunchJob ToLaunchJob(const Job& job, const std::filesystem::path& program);

// What a launcher needs to find a job again.
struct JobRef {
  std::string key;
  std::string native_id;  // as Submit gave it; may be empty where it was never learnt
};

enum class JobPhase {
  kQueued,
  kRunning,
  kEnded,
  kMissing,  // the scheduler has never heard of this key, or has forgotten it
};
std::string_view PhaseName(JobPhase phase);

struct JobState {
  std::string key;
  std::string native_id;
  JobPhase phase = JobPhase::kMissing;
  // What the scheduler says of it: exit_code, signal, log_tail, …, and what include/ridgeline/launcher.h lists for
  // kEnded and for kQueued.
  std::map<std::string, std::string> evidence;
  int64_t started_unix_ns = 0;  // when it began to run; 0: not known
};

struct Submission {
  std::string key;
  std::string native_id;       // the scheduler's name for it; empty where `error` is set
  std::optional<Error> error;  // why this one was not submitted
  bool retry = false;          // nothing is wrong with the job: submit it again later
  InfrastructureReason reason = InfrastructureReason::kStart;  // what refused it, where `error` is set
};

struct LaunchFile {
  std::string name;  // a file name, no folder
  std::string content;
};

struct Rendered {
  std::vector<LaunchFile> files;
  std::string submit;             // the command that submits them; FILE stands for a file, DIR for their folder
  std::string fetch;              // the command that brings the results into DIR; empty where the jobs themselves do
  std::vector<std::string> asks;  // what jobs ask for beside what they were told to, in words
};

// What a launcher can besides what all can.
struct LauncherCapabilities {
  bool queue = false;       // of its own: it takes LauncherStatus::max_jobs at once and runs them in its own time
  bool poll_pause = false;  // it says how long it wants to be left alone
  bool render = false;
};

struct LauncherStatus {
  bool available = false;
  std::string why;  // not available
  std::string description;
  int64_t max_jobs = 0;  // that it takes at once, where it has a queue; any other takes as many as run at once
  bool retry = false;    // not available, and nothing is wrong but the moment
};

class Launcher {
 public:
  virtual ~Launcher() = default;
  virtual const std::string& name() const = 0;
  virtual LauncherCapabilities can() const = 0;
  // Can jobs be submitted from here, now? Throws only where the configuration is wrong.
  virtual LauncherStatus Probe() = 0;
  // The files a person could submit by hand. Throws where it cannot render.
  virtual Rendered Render(std::span<const LaunchJob> jobs) = 0;
  // One answer a job, in order. A key that exists already is found, never started a second time.
  virtual std::vector<Submission> Submit(std::span<const LaunchJob> jobs) = 0;
  // One question for all jobs; one answer a job, in order. Local jobs that wait for a free slot are started by it.
  virtual std::vector<JobState> PollMany(std::span<const JobRef> jobs) = 0;
  // The same for who is no driver: of a launcher with a queue nothing changes by it.
  virtual std::vector<JobState> Look(std::span<const JobRef> jobs) { return PollMany(jobs); }
  // How long to leave it alone after the last PollMany; 0: no wish.
  virtual int64_t PollPauseNs() const { return 0; }
  // In order: true where the job was there to be told to end. It has ended only when PollMany says so.
  virtual std::vector<bool> Cancel(std::span<const JobRef> jobs) = 0;
};

// The launchers that lie in a plugin folder, sorted: for messages and for `ridgeline doctor`.
std::vector<std::string> AvailableLaunchers(const std::filesystem::path& plugin_dir);

// Loads ridgeline-launcher-NAME.so. `config` is the sweep's `launch:` mapping, `state_dir` a folder of the launcher's
// own (made where missing, but not to render). Throws Error naming the check that failed: no such file (and which there
// are), what dlopen said, a missing symbol, another ABI version, a short table, a null function; and the launcher's own
// words for a configuration that is wrong.
std::unique_ptr<Launcher> LoadLauncher(const std::string& name, const Json& config,
                                       const std::filesystem::path& state_dir, const std::filesystem::path& plugin_dir);
// The same from DataDir("plugins").
std::unique_ptr<Launcher> LoadLauncher(const std::string& name, const Json& config,
                                       const std::filesystem::path& state_dir);

}  // namespace ridgeline
