// The plan: points that are not done and can fit, ordered and bundled into jobs to submit.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "plan/memory_limit.h"
#include "predict/memory_forecast.h"
#include "predict/time_model.h"
#include "ridgeline/run.h"
#include "run/job.h"
#include "run/measurement.h"
#include "sweep/expand.h"
#include "sweep/sweep.h"

namespace ridgeline::plan {

enum class Verdict {
  kFits,
  kOutOfMemory,
  kUnknown,       // the memory that it will have is not known here
  kNotPredicted,  // another trainer's, whose memory no framework estimates
};
std::string_view VerdictName(Verdict verdict);  // "fits", "out_of_memory", "unknown", "not_predicted"

using Forecaster = std::function<predict::MemoryForecast(const RunSpec&)>;

// Is called after each of `points`, to show progress. May be empty, and may throw to stop the pass.
using OnPoint = std::function<void(size_t done, size_t points)>;

struct PlanOptions {
  NodeMemory node;                          // what each node has
  bool runs_here = false;                   // on this machine, so `data` must name a file here
  std::string key_name;                     // goes into the jobs' keys; empty: the sweep's name
  std::map<std::string, int64_t> attempts;  // point id -> its attempts so far; missing: 0. Part of a job's key
  std::map<std::string, int64_t> repeats;   // point id -> its measured repeats; missing: 0
  std::filesystem::path jobs_dir;           // absolute; a job's folder is jobs_dir / key
  std::vector<std::string> trainer;         // argv if the sweep names no trainer; empty: ridgeline-train
  std::shared_ptr<const predict::Frameworks> frameworks;  // for the estimates of other trainers' points; may be empty
  bool include_oom = false;                               // points that are predicted not to fit become jobs, too
  predict::TimeModel times;  // durations of points, for bundles given as a time and for automatic time limits
};

struct PlannedPoint {
  size_t point = 0;  // index into the given points
  Verdict verdict = Verdict::kFits;
  predict::MemoryForecast forecast;  // of one rank; all 0 if it is not predicted
  SlabLimit limit;                   // the limit for planned_peak_bytes
  bool fits_sharded = false;         // out of memory, but would fit with `shard: full`
  std::string estimated = {};        // the framework, and what backs its estimate; such a point is never held back
};

struct Plan {
  std::vector<PlannedPoint> points;   // one for each point, in the given order
  std::vector<Job> jobs;              // the cheapest first, so that first results come early
  std::vector<std::string> warnings;  // what jobs ask for that nothing would use, each once
  std::vector<RunResult> skipped;     // skipped_predicted_oom; wanted_bytes and available_bytes are in the evidence
};

// Returns `time_limit: auto` for a point of this cost: twice what the slowest of nine in ten such points would take,
// rounded up to five minutes, and at least ten minutes. 0: no duration is known.
int64_t AutoTimeLimitS(const predict::TimeModel& times, double cost);

// Returns jobs for `points`, which are the sweep's points that have no result and are not in flight. All points of a
// job have the same requirements (LaunchOf). A point's memory is the slab of one rank, within SlabLimitOf. Another
// trainer's point is estimated by its framework, and never held back for memory. Points on the meta device always fit.
// For bundles given as a time, a point takes what such points took before, else its time limit. Throws
// Error(kInvalidInput) before anything is paid for: if jobs run here and a data file or a trainer is missing, or if the
// duration of a point is needed and not known. Specs that differ only in fields that do not change memory share a
// forecast. Deterministic: equal arguments give equal plans.
Plan MakePlan(const sweep::Sweep& sweep, const std::vector<Point>& points, const PlanOptions& options,
              const Forecaster& forecaster, const OnPoint& on_point = {});

// Returns the job for the next repeat of one of the sweep's points, to make it again if its file is lost. It has no key
// yet.
Job JobFor(const sweep::Sweep& sweep, const Point& point, const PlanOptions& options);

// Gives a job the key and the folder that follow from its points. No other code makes them.
void NameJob(Job& job, const PlanOptions& options);

// Replaces a relative checkpoint.dir by a folder for this point under `folder`. The next attempt at the same
// measurement, which is another job, finds its files there. Another campaign must not find them, because it would find
// its steps done.
void PlaceCheckpointFiles(Point& point, const std::filesystem::path& folder, const MeasurementKey& measured_as);

// Returns the key of a job: "rl-" and 32 hexadecimal digits, from the sweep's name, its points and the attempt of each.
std::string JobKey(const std::string& sweep_name, const std::vector<std::string>& point_ids,
                   const std::map<std::string, int64_t>& attempts);

// Returns the spec with every field that does not change memory (learning rate, seed, steps, …) set to a fixed value.
RunSpec MemoryRelevant(const RunSpec& spec);

}  // namespace ridgeline::plan
