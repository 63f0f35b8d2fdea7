// Launchers bring jobs to where they run. The interface for the driver, and its one implementation: a plugin that is
// loaded through include/ridgeline/launcher.h.
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
#include "sweep/job_description.h"

namespace ridgeline::launch {

// What a launcher must know about a job to submit it. Has nothing about training.
struct LaunchJob {
  std::string key;
  std::string sweep;
  std::filesystem::path job_file;
  std::filesystem::path job_dir;
  int64_t nodes = 1;
  int64_t cpus = 0;                // cores that the job needs on each node; 0: whatever the launcher gives a job
  int64_t memory_bytes = 0;        // for each node; 0: no limit
  int64_t time_limit_s = 0;        // for the whole job; 0: none
  int64_t save_time_s = 0;         // it can be continued if it gets a signal so long before its end; 0: it cannot
  bool own_trainer = false;        // it runs ridgeline-train, so it needs no other trainer's image
  std::vector<std::string> exec;   // argv that runs the job on a node
  std::vector<std::string> avoid;  // nodes to avoid, because other jobs failed there
  Json config;                     // this job's `launch:` mapping; null: the mapping that the launcher was loaded with
};

// `program` is the `ridgeline` that runs the job: `program exec JOB.json`. The time limit is the sum of the points'
// limits, of the times that their ranks may take to meet, and of a margin for starting and stopping each.
LaunchJob ToLaunchJob(const Job& job, const std::filesystem::path& program);

// What a launcher needs to find a job again.
struct JobRef {
  std::string key;
  std::string native_id;  // from Submit; may be empty if it was never learned
};

enum class JobPhase {
  kQueued,
  kRunning,
  kEnded,
  kMissing,  // the scheduler has never known this key, or has forgotten it
};
std::string_view PhaseName(JobPhase phase);

struct JobState {
  std::string key;
  std::string native_id;
  JobPhase phase = JobPhase::kMissing;
  // The scheduler's report about the job: exit_code, signal, log_tail, …, and what include/ridgeline/launcher.h lists
  // for kEnded and kQueued.
  std::map<std::string, std::string> evidence;
  int64_t started_unix_ns = 0;  // when it began to run; 0: not known
};

// How long a launcher that submits in bulk may take over one call.
inline constexpr int64_t kSubmitWithinMs = 1000;

struct Submission {
  std::string key;
  std::string native_id;                                       // the scheduler's name for it; empty if `error` is set
  std::optional<Error> error;                                  // why this one was not submitted
  bool retry = false;                                          // nothing is wrong with the job: submit it again later
  InfrastructureReason reason = InfrastructureReason::kStart;  // what refused it, if `error` is set
  bool later = false;  // not begun for want of time: nothing is known against it
};

struct LaunchFile {
  std::string name;  // a file name without a folder
  std::string content;
};

struct Rendered {
  std::vector<LaunchFile> files;
  std::string submit;             // the command that submits the files; FILE stands for a file, DIR for their folder
  std::string fetch;              // the command that brings the results into DIR; empty if the jobs themselves do
  std::vector<std::string> asks;  // what jobs ask for besides what they were told to, in words
};

// Optional abilities of a launcher.
struct LauncherCapabilities {
  bool queue = false;       // has a queue: it takes LauncherStatus::max_jobs at once and runs them when it can
  bool poll_pause = false;  // says how long it wants to be left alone
  bool render = false;
  bool bulk = false;  // a call about many jobs costs about as much as a call about one
  bool bill = false;  // its jobs are billed, and it says what still is
};

struct LauncherStatus {
  bool available = false;
  std::string why;  // why it is not available
  std::string description;
  int64_t max_jobs = 0;  // with a queue, the most jobs that it takes at once; others take as many as run at once
  bool retry = false;    // the launcher is unavailable only for the moment
};

class Launcher {
 public:
  virtual ~Launcher() = default;
  virtual const std::string& name() const = 0;
  virtual LauncherCapabilities can() const = 0;
  // Returns whether jobs can be submitted from here now. Throws only if the configuration is wrong.
  virtual LauncherStatus Probe() = 0;
  // Returns for each job, in order, why the scheduler would refuse it; nothing if it would take it, or if the launcher
  // cannot ask. Submits nothing.
  virtual std::vector<std::optional<Error>> WhyRefused(std::span<const LaunchJob> jobs) {
    return std::vector<std::optional<Error>>(jobs.size());
  }
  // Returns what of the sweep is billed now, a text each: jobs that have not ended, and machines that are kept.
  virtual std::vector<std::string> StillBilled(const std::string& /*sweep*/) { return {}; }
  // Returns the files that a person could submit by hand. Throws if it cannot render.
  virtual Rendered Render(std::span<const LaunchJob> jobs) = 0;
  // Returns one answer for each job, in order. Finds a key that exists already, and never starts it a second time.
  virtual std::vector<Submission> Submit(std::span<const LaunchJob> jobs) = 0;
  // Asks one question for all jobs. Returns one answer for each job, in order. Starts local jobs that wait for a free
  // slot.
  virtual std::vector<JobState> PollMany(std::span<const JobRef> jobs) = 0;
  // The same for callers that are no driver. A launcher with a queue changes nothing.
  virtual std::vector<JobState> Look(std::span<const JobRef> jobs) { return PollMany(jobs); }
  // How long to leave it alone after the last PollMany; 0: no wish.
  virtual int64_t PollPauseNs() const { return 0; }
  // Returns in order whether the job existed, so that it was told to end. It has ended only when PollMany says so.
  virtual std::vector<bool> Cancel(std::span<const JobRef> jobs) = 0;
};

// The launchers in a plugin folder, sorted, for messages and for `ridgeline doctor`.
std::vector<std::string> AvailableLaunchers(const std::filesystem::path& plugin_dir);

// Returns a function that asks launchers what a job asks for. It loads a launcher when it is first asked about, and
// remembers answers. `plugin_dir`: empty: DataDir("plugins"). Thread-safe.
std::shared_ptr<const sweep::DescribeJob> AskLaunchers(const std::filesystem::path& plugin_dir = {});

// Loads ridgeline-launcher-NAME.so. `config` is the sweep's `launch:` mapping, `state_dir` a folder for the launcher's
// own files (is made if missing, but not to render). Throws Error that names the check that failed: no such file (and
// which there are), dlopen's message, a missing symbol, another ABI version, a short table, a null function. Also
// throws the launcher's own words for a wrong configuration.
std::unique_ptr<Launcher> LoadLauncher(const std::string& name, const Json& config,
                                       const std::filesystem::path& state_dir, const std::filesystem::path& plugin_dir);
// The same from DataDir("plugins").
std::unique_ptr<Launcher> LoadLauncher(const std::string& name, const Json& config,
                                       const std::filesystem::path& state_dir);

}  // namespace ridgeline::launch
