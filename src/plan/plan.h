// The plan: points less what is done and what cannot fit, ordered and bundled into the jobs to submit.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "plan/memory.h"
#include "predict/memory.h"
#include "predict/time_model.h"
#include "ridgeline/run.h"
#include "run/job.h"
#include "run/measurement.h"
#include "sweep/expand.h"
#include "sweep/sweep.h"

namespace ridgeline {

enum class Verdict {
  kFits,
  kOutOfMemory,
  kUnknown,       // what memory it will have is known to nobody here
  kNotPredicted,  // another trainer's, whose memory no framework estimates
};
std::string_view VerdictName(Verdict verdict);  // "fits", "out_of_memory", "unknown", "not_predicted"

using Forecaster = std::function<MemoryForecast(const RunSpec&)>;

// Told after each of `points`, for who waits; may be empty.
using OnPoint = std::function<void(size_t done, size_t points)>;

struct PlanOptions {
  NodeMemory node;                               // what each node has
  bool runs_here = false;                        // on this machine: what `data` names must be a file here
  std::string key_name;                          // what jobs' keys say they are of; empty: the sweep's name
  std::map<std::string, int64_t> attempts;       // point id -> attempts it has had; none: 0. Part of a job's key
  std::map<std::string, int64_t> repeats;        // point id -> its repeats that are measured; none: 0
  std::filesystem::path jobs_dir;                // absolute; a job's folder is jobs_dir / key
  std::vector<std::string> trainer;              // argv, where the sweep names none; empty: ridgeline-train
  std::shared_ptr<const Frameworks> frameworks;  // by which points of other trainers are estimated; may be empty
  bool include_oom = false;                      // points that are predicted not to fit are jobs like the others
  TimeModel times;  // how long points take, for bundles that are a time and for time limits that follow from it
  OnPoint on_point;
};

struct PlannedPoint {
  size_t point = 0;  // index into the points given
  Verdict verdict = Verdict::kFits;
  MemoryForecast forecast;     // of one rank; all 0 where it is not predicted
  SlabLimit limit;             // what planned_peak_bytes was compared with
  bool fits_sharded = false;   // out of memory, and would fit with `shard: full`
  std::string estimated = {};  // as which framework, and what backs it: such a point is never held back
};

struct Plan {
  std::vector<PlannedPoint> points;   // one a point, in the order given
  std::vector<Job> jobs;              // the cheapest first, so that something shows early
  std::vector<std::string> warnings;  // what jobs ask for that nothing would use, each once
  std::vector<RunResult> skipped;     // skipped_predicted_oom: wanted_bytes and available_bytes are in the evidence
};

// `time_limit: auto` of a point of this cost: twice what the slowest of nine in ten such points would take, in steps of
// five minutes, and ten at least. 0: nothing says how long it takes.
int64_t AutoTimeLimitS(const TimeModel& times, double cost);

// Jobs for `points`, which are those of the sweep that have no result and are not in flight. Those of one job ask for
// the same (LaunchOf). A point's memory is the slab of one rank, limited as SlabLimitOf has it; a point of another
// trainer than ours is estimated as its framework says, and never held back for memory. Points on the meta device
// always fit. Where jobs are bundled by time, a point takes what such points took before, else its time limit. Throws
// Error(kInvalidInput) for a data file or a trainer that is missing where jobs run here, or where nothing says how long
// a point takes, before anything is paid for. Specs that differ in nothing that changes memory share one forecast.
// Deterministic: equal arguments, equal plan.
Plan MakePlan(const Sweep& sweep, const std::vector<Point>& points, const PlanOptions& options,
              const Forecaster& forecaster);

// A job of the next repeat of one of the sweep's points, as it has to be made again where its file is lost. It has no
// key yet.
Job JobFor(const Sweep& sweep, const Point& point, const PlanOptions& options);

// Gives a job the key and the folder that follow from its points: the one place where they are made.
void NameJob(Job& job, const PlanOptions& options);

// A relative checkpoint.dir becomes a folder of the point's own under `folder`, where the next attempt at the same
// measurement, which is another job, finds its files. Another campaign must not: it would find its steps done.
void PlaceCheckpointFiles(Point& point, const std::filesystem::path& folder, const MeasurementKey& measured_as);

// The key of a job: "rl-" and 32 hexadecimal digits, from the sweep's name, its points and each one's attempt.
std::string JobKey(const std::string& sweep_name, const std::vector<std::string>& point_ids,
                   const std::map<std::string, int64_t>& attempts);

// The spec with everything that does not change memory (learning rate, seed, steps, …) put to one value.
RunSpec MemoryRelevant(const RunSpec& spec);

}  // namespace ridgeline
