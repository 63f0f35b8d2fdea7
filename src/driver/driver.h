// The driver. It turns a sweep's points without results into jobs, and the jobs' results into rows of the store.
//
// It may be killed at any instruction. It commits every job to the store as an intent, under its deterministic key,
// before anything of the job exists elsewhere. The next run finds the live jobs in the store. It hands intents to the
// launcher again under the same key (which finds a job that exists), and plans only points that are in no live job.
// Results are collected from files that exist whole or not at all, and collecting twice changes nothing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "driver/progress.h"
#include "driver/trainer_faults.h"
#include "launch/launcher.h"
#include "plan/plan.h"
#include "store/store.h"
#include "sweep/sweep.h"

namespace ridgeline::driver {

// The jobs of a sweep for one campaign.
struct SweepCampaign {
  std::string sweep;
  std::string campaign;
};

struct DriverOptions {
  std::filesystem::path program;     // the `ridgeline` whose `exec` runs a job
  std::filesystem::path jobs_dir;    // absolute: new jobs' folders go here; a relative checkpoint.dir is beside it
  std::vector<std::string> trainer;  // argv if the sweep names no trainer; empty: ridgeline-train
  // Results go to this campaign, and points that have a result in it are not measured again.
  std::string campaign = kDefaultCampaign;
  Facts here;                 // facts about the machine and the version that would measure now, as far as known
  int64_t max_parallel = 1;   // most jobs at once, if the launcher has no queue of its own
  plan::NodeMemory node;      // what each node has (plan/memory_limit.h)
  bool runs_here = false;     // jobs run on this machine (plan/plan.h)
  predict::TimeModel times;   // assumed durations of points, until some were measured
  bool retry_failed = false;  // run points again that ended badly
  bool include_oom = false;   // also run points that are predicted not to fit
  bool detach = false;        // submit all jobs, then leave them to the launcher's queue
  std::map<std::string, double> predicted_usd = {};  // point id -> the price that was predicted for a run of it
  std::vector<SweepCampaign> costs_of = {};  // whose jobs count against `max_cost`; empty: the sweep's, of `campaign`
};

// The counts before the first job of a run.
struct RunStart {
  int64_t points = 0;
  int64_t finished = 0;       // points with a result from an earlier run
  int64_t retried = 0;        // failed points among these that are run again
  int64_t adopted_jobs = 0;   // left by a run that was stopped
  int64_t predicted_oom = 0;  // points not run, because they cannot fit
  int64_t elsewhere = 0;      // points finished by another machine or build
  std::string predicted_oom_why = {};
};

struct RunSummary {
  int64_t ok = 0;              // over all points of the sweep, whenever they ran
  int64_t failed = 0;          // points with a result that is not ok
  int64_t out_of_memory = 0;   // failed points that ran out of memory
  int64_t no_result = 0;       // points without a result that stands: infrastructure, cancelled, never started
  int64_t infrastructure = 0;  // points without a result because the infrastructure failed
  int64_t live_jobs = 0;       // jobs left running
  bool interrupted = false;
  bool left = false;            // the jobs were left as they are and go on by themselves
  std::string given_up;         // why it stopped submitting jobs; empty: it did not
  bool trainers_fault = false;  // whether the trainer is the reason
  std::string set_aside;        // nodes that it set aside, with what failed there; empty: none
};

// Receives a run's events. Calls come from the driver's thread.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  virtual void Started(const RunStart& start) = 0;
  virtual void PointEnded(const std::string& label, const std::string& outcome, const RunProgress& progress) = 0;
  virtual void Note(const std::string& text) = 0;        // anything else worth a line
  virtual bool WantsProgress(int64_t monotonic_ns) = 0;  // called often; progress costs a few file reads
  virtual void Progress(const RunProgress& progress) = 0;
  // What the run does before jobs can start, in a line that replaces the last; empty: it is done.
  virtual void Working(const std::string& /*line*/) {}
};

// The user asked to stop, and the call did not finish.
class Interrupted final : public Error {
 public:
  Interrupted() : Error(ErrorKind::kInfrastructure, "interrupted") {}
};

// What the driver works with. All of these must outlive the call.
struct DriverParts {
  store::Store& store;
  launch::Launcher& launcher;
  Clock& clock;
  plan::Forecaster forecaster;
  RunObserver& observer;
  // How often a stop was asked for. Once: live jobs are cancelled and collected. More: they are left as they are.
  std::function<int()> interrupts;
  // Throws Interrupted if a stop was asked for.
  void ThrowIfInterrupted() const {
    if (interrupts() > 0) throw Interrupted();
  }
  // Called before jobs are planned, each time that some are. Throws Error if none of them may start.
  std::function<void()> before_jobs = {};
  // Shared by all runs that belong together; nullptr: this run stands alone.
  TrainerFaults* trainer_faults = nullptr;
};

// REQUIRES: the caller holds the database's DriverLock. Throws Error if the store, the disk or the launcher fails for
// good. Live jobs then go on, and the next run adopts them.
RunSummary RunSweep(const sweep::Sweep& sweep, const DriverOptions& options, const DriverParts& parts);

struct Cancelled {
  int64_t live = 0;    // jobs that have not ended yet
  std::string untold;  // why they could not be told to end; empty: they were
};

// Tells these jobs to end, waits for that (about 40 s at most), and collects them. Within that time it asks a launcher
// again that does not answer, and reads a file again that cannot be read.
// `price`: for what the jobs are billed. `predicted_usd`: as in DriverOptions; empty: not known now.
Cancelled CancelJobs(std::vector<store::JobRecord> jobs, store::Store& store, launch::Launcher& launcher, Clock& clock,
                     const sweep::SweepPrice& price, const std::map<std::string, double>& predicted_usd,
                     const std::function<bool()>& give_up);

}  // namespace ridgeline::driver
