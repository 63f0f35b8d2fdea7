// The driver: a sweep's points that have no result yet become jobs, and the jobs' results rows of the store.
//
// It may be killed at any instruction. Every job is committed to the store as an intent, under its deterministic key,
// before anything of it exists elsewhere; the next run finds the live jobs of the store, hands intents to the launcher
// again under the same key (which finds a job that exists), and plans only points that are in no live job. Results are
// collected from files that are there whole or not at all, and collecting twice changes nothing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "driver/progress.h"
#include "driver/trainer_faults.h"
#include "launch/launcher.h"
#include "plan/plan.h"
#include "store/store.h"
#include "sweep/sweep.h"

namespace ridgeline {

struct DriverOptions {
  std::filesystem::path program;     // the `ridgeline` whose `exec` runs a job
  std::filesystem::path jobs_dir;    // absolute: new jobs' folders go here; a relative checkpoint.dir is beside it
  std::vector<std::string> trainer;  // argv, where the sweep names none; empty: ridgeline-train
  std::string campaign = kDefaultCampaign;  // what is measured is of it, and what it has is not measured again
  Facts here;                               // of the machine and the version that would measure now, as far as known
  int64_t max_parallel = 1;                 // jobs at once, where the launcher does not queue them itself
  NodeMemory node;                          // what each node has (plan/memory.h)
  bool runs_here = false;                   // jobs run on this machine (plan/plan.h)
  TimeModel times;                          // what is assumed of how long points take, until some were measured
  bool retry_failed = false;                // run points again that ended badly
  bool include_oom = false;                 // run points, too, that are predicted not to fit
  bool detach = false;                      // hand over what there is to do, and leave it to the launcher's queue
};

// What is known before the first job of a run.
struct RunStart {
  int64_t points = 0;
  int64_t finished = 0;       // have a result from an earlier run
  int64_t retried = 0;        // of those, failed ones that are run again
  int64_t adopted_jobs = 0;   // left by a run that was stopped
  int64_t predicted_oom = 0;  // not run: they cannot fit
  int64_t elsewhere = 0;      // finished, by another machine or build
  std::string predicted_oom_why = {};
};

struct RunSummary {
  int64_t ok = 0;              // of all the sweep's points, whenever they ran
  int64_t failed = 0;          // with a result that is not ok
  int64_t out_of_memory = 0;   // of those, for want of memory
  int64_t no_result = 0;       // without one that stands: infrastructure, cancelled, never started
  int64_t infrastructure = 0;  // of those, what was at fault was the infrastructure
  int64_t live_jobs = 0;       // left running
  bool interrupted = false;
  bool left = false;            // the jobs were left as they are: they go on by themselves
  std::string given_up;         // why it stopped handing over jobs; empty: it did not
  bool trainers_fault = false;  // and whether that is the trainer's
  std::string set_aside;        // nodes that it set aside, with what failed there; empty: none
};

// Told what happens. Calls come from the driver's thread.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  virtual void Started(const RunStart& start) = 0;
  virtual void PointEnded(const std::string& label, const std::string& outcome, const RunProgress& progress) = 0;
  virtual void Note(const std::string& text) = 0;        // anything else worth a line
  virtual bool WantsProgress(int64_t monotonic_ns) = 0;  // asked often; progress costs a few file reads
  virtual void Progress(const RunProgress& progress) = 0;
};

// What the driver works with. All must outlive the call.
struct DriverParts {
  Store& store;
  Launcher& launcher;
  Clock& clock;
  Forecaster forecaster;
  RunObserver& observer;
  // How often a stop was asked for. Once: live jobs are cancelled and collected. More: they are left as they are.
  std::function<int()> interrupts;
  // Of all runs that belong together; nullptr: this is one by itself.
  TrainerFaults* trainer_faults = nullptr;
};

// REQUIRES: the caller holds the database's DriverLock. Throws Error where the store, the disk or the launcher fails
// for good; jobs that live then go on, and the next run adopts them.
RunSummary RunSweep(const Sweep& sweep, const DriverOptions& options, const DriverParts& parts);

// Tells these jobs to end, waits for it (about 40 s at most), and collects them. A launcher that does not answer is
// asked again as long, and a file that cannot be read is read again. Returns how many live on.
int64_t CancelJobs(std::vector<JobRecord> jobs, Store& store, Launcher& launcher, Clock& clock,
                   const std::function<bool()>& give_up);

}  // namespace ridgeline
