#include "plan/plan.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "plan/trainer.h"
#include "ridgeline/amount.h"
#include "ridgeline/foreign_file.h"
#include "run/presets.h"
#include "run/spec.h"
#include "run/step_figures.h"
#include "sweep/launch.h"

namespace ridgeline::plan {
namespace {

class ForecastCache {
 public:
  explicit ForecastCache(const Forecaster& forecaster) : forecaster_(forecaster) {}

  const predict::MemoryForecast& Get(const Point& point) {
    const RunSpec key = MemoryRelevant(point.spec);
    const auto [it, is_new] = known_.try_emplace(EncodeSpec(key));
    if (is_new) {
      try {
        const auto [few, is_first] = with_few_micro_steps_.try_emplace(EncodeSpec(predict::WithFewMicroSteps(key)));
        if (is_first) few->second = forecaster_(predict::WithFewMicroSteps(point.spec));
        it->second = predict::WithAllMicroSteps(few->second, point.spec);
      } catch (const Error& e) {
        throw Error(e.kind(), fmt::format("point {}: {}", point.id, e.message()), e.hint());
      }
    }
    return it->second;
  }

 private:
  const Forecaster& forecaster_;
  std::unordered_map<std::string, predict::MemoryForecast> known_;
  std::unordered_map<std::string, predict::MemoryForecast> with_few_micro_steps_;
};

bool Fits(const predict::MemoryForecast& forecast, const SlabLimit& limit) {
  return limit.bytes == 0 || forecast.planned_peak_bytes <= limit.bytes;
}

// For a point whose memory is predicted.
Verdict VerdictOf(const RunSpec& spec, const predict::MemoryForecast& forecast, const SlabLimit& limit) {
  if (limit.bytes == 0 && spec.device != "meta") return Verdict::kUnknown;
  return Fits(forecast, limit) ? Verdict::kFits : Verdict::kOutOfMemory;
}

// Returns whether the point would fit if its ranks shared what each of them holds now.
bool FitsSharded(const Point& point, const SlabLimit& limit, ForecastCache& forecasts) {
  if (point.spec.ranks == 1 || point.spec.shard == ShardMode::kFull) return false;
  Point sharded = point;
  sharded.spec.shard = ShardMode::kFull;
  Canonicalize(sharded.spec);
  return CheckSpec(sharded.spec).empty() && Fits(forecasts.Get(sharded), limit);
}

RunResult SkippedResult(const Point& point, const PlannedPoint& planned) {
  RunResult result;
  result.point_id = point.id;
  result.status = RunStatus::kSkippedPredictedOom;
  result.provenance = Provenance::kPredicted;
  const int64_t processes = ProcessesOf(point.spec);
  result.message = fmt::format("predicted to need {} for its tensors{}, and {} are available ({})",
                               FormatBytes(planned.forecast.planned_peak_bytes),
                               processes > 1 ? fmt::format(" on each of {} ranks", processes) : "",
                               FormatBytes(planned.limit.bytes), planned.limit.basis);
  result.hint = planned.fits_sharded
                    ? "with `shard: full` it fits: its ranks then share weights, gradients and optimizer state"
                    : "use activation checkpointing, a smaller batch_size, seq_length or model, or a larger machine";
  result.evidence = {{"wanted_bytes", std::to_string(planned.forecast.planned_peak_bytes)},
                     {"available_bytes", std::to_string(planned.limit.bytes)},
                     {"basis", planned.limit.basis}};
  result.communicator = point.spec.communicator;
  result.parameters = CountParameters(point.spec);
  result.tokens_per_step = TokensAStep(point.spec);
  result.memory.planned_peak_bytes = planned.forecast.planned_peak_bytes;
  result.memory.by_category = planned.forecast.by_category;
  return result;
}

// Returns how many of the points, which are in order, the next job runs according to the sweep.
size_t BundleSize(std::span<const double> costs, const sweep::Launch& launch, int64_t time_limit_s,
                  const predict::TimeModel& times) {
  if (launch.bundle_s == 0) return std::min(costs.size(), static_cast<size_t>(std::max<int64_t>(1, launch.bundle)));
  const auto limit_s = static_cast<double>(time_limit_s);
  if (times.Seconds(costs.front(), limit_s) == 0) {
    throw Error(ErrorKind::kInvalidInput,
                "launch: bundle is a time, but the time of a point is not known: none was measured yet",
                "set time_limit, which then counts as a point's time; or name a device (`price: {device: …}`); or "
                "bundle a number of points");
  }
  return times.FitWithin(static_cast<double>(launch.bundle_s), costs, limit_s);
}

// A point's job before it is bundled, and its cost.
struct Costed {
  double cost;
  Job job;
};

// Groups points with the same requirements, in their order. Each group takes the place of its first point.
std::vector<std::vector<Costed>> Groups(std::vector<Costed> points) {
  std::vector<std::vector<Costed>> groups;
  for (Costed& point : points) {
    const auto group = std::find_if(groups.begin(), groups.end(), [&](const std::vector<Costed>& known) {
      return AskForTheSame(known.front().job, point.job);
    });
    (group == groups.end() ? groups.emplace_back() : *group).push_back(std::move(point));
  }
  return groups;
}

// Returns where the sweep gives this value to the field. If a model or family gives it, returns the place of the
// defaults.
yaml::Place PlaceOf(const sweep::Sweep& sweep, std::string_view field, const std::string& path) {
  std::vector<sweep::Assignment> assignments = sweep.defaults;
  for (const sweep::AxisGroup& group : sweep.groups) {
    for (const sweep::Axis& axis : group) assignments.insert(assignments.end(), axis.begin(), axis.end());
  }
  for (const sweep::Include& include : sweep.include) {
    for (const sweep::Axis& axis : include.additions) assignments.insert(assignments.end(), axis.begin(), axis.end());
  }
  const auto it = std::find_if(assignments.begin(), assignments.end(), [&](const sweep::Assignment& assignment) {
    return assignment.field->name == field && assignment.value == FieldValue(path);
  });
  return it == assignments.end() ? sweep.defaults_place : it->place;
}

void RequireDataFiles(const sweep::Sweep& sweep, const std::vector<Point>& points) {
  std::set<std::string> seen;
  for (const Point& point : points) {
    const std::string& path = point.spec.data;
    if (path == "synthetic" || !seen.insert(path).second) continue;
    const ForeignFile file(path, ForeignFile::Links::kFollowed);
    if (file.is_open()) continue;
    const yaml::Place place = PlaceOf(sweep, "data", path);
    throw Error(ErrorKind::kInvalidInput,
                yaml::FaultText(sweep.file, {place, fmt::format("the data file '{}' {}", path, file.problem())}),
                "name any text file as `data`, or install the package that has this one");
  }
}

void RequireWeights(const sweep::Sweep& sweep, const std::vector<Point>& points) {
  std::set<std::string> seen;
  for (const Point& point : points) {
    const std::string& path = point.spec.init_from;
    std::error_code ec;
    if (path == "seed" || !seen.insert(path).second || std::filesystem::is_directory(path, ec)) continue;
    const yaml::Place place = PlaceOf(sweep, "init_from", path);
    throw Error(ErrorKind::kInvalidInput,
                yaml::FaultText(sweep.file, {place, fmt::format("there is no folder '{}' of weights here", path)}),
                "name a folder that a run left in its checkpoint.dir or that transformers saved, or `seed`");
  }
}

}  // namespace

std::string_view VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kFits:
      return "fits";
    case Verdict::kOutOfMemory:
      return "out_of_memory";
    case Verdict::kUnknown:
      return "unknown";
    case Verdict::kNotPredicted:
      return "not_predicted";
  }
  return "";
}

Plan MakePlan(const sweep::Sweep& sweep, const std::vector<Point>& points, const PlanOptions& options,
              const Forecaster& forecaster, const OnPoint& on_point) {
  if (options.runs_here) {
    RequireDataFiles(sweep, points);
    RequireWeights(sweep, points);
    RequireTrainer(sweep);
    RequirePrograms(sweep, points);
  }
  Plan plan;
  plan.points.reserve(points.size());
  ForecastCache forecasts(forecaster);
  std::vector<Costed> to_run;
  for (size_t i = 0; i < points.size(); ++i) {
    const RunSpec& spec = points[i].spec;
    Job job = JobFor(sweep, points[i], options);
    const sweep::Launch launch = sweep::LaunchOf(sweep, points[i]);
    RequireScheduler(sweep, launch);
    RequireGpus(sweep, spec, launch);
    if (launch.time_limit_auto && job.points.front().time_limit_s == 0) {
      throw Error(
          ErrorKind::kInvalidInput,
          yaml::FaultText(sweep.file, {launch.place,
                                       "time_limit is auto, but the time of a point is not known: none was measured "
                                       "yet, and `price` names no device"}),
          "set time_limit, or name a device: `price: {device: …}` (docs/prediction.md)");
    }
    for (std::string& odd : OddRequests(spec, launch)) {
      if (std::ranges::find(plan.warnings, odd) != plan.warnings.end()) continue;
      plan.warnings.push_back(std::move(odd));
    }
    PlannedPoint planned;
    planned.point = i;
    planned.limit = SlabLimitOf(spec, launch, options.node);
    if (const predict::Framework* framework = EstimatedAs(spec, launch, options.node, options.frameworks.get())) {
      planned.forecast.planned_peak_bytes = predict::PeakBytes(*framework, spec);
      planned.verdict = VerdictOf(spec, planned.forecast, planned.limit);
      planned.estimated = framework->Basis(options.node.device != nullptr ? options.node.device->gpu : spec.gpu);
    } else if (!IsOurTrainer(launch)) {
      planned.verdict = Verdict::kNotPredicted;
    } else {
      planned.forecast = forecasts.Get(points[i]);
      planned.verdict = VerdictOf(spec, planned.forecast, planned.limit);
    }
    if (planned.verdict == Verdict::kOutOfMemory && planned.estimated.empty()) {
      planned.fits_sharded = FitsSharded(points[i], planned.limit, forecasts);
    }
    if (planned.verdict == Verdict::kOutOfMemory && planned.estimated.empty() && !options.include_oom) {
      plan.skipped.push_back(SkippedResult(points[i], planned));
    } else {
      to_run.push_back({predict::RelativeCost(spec), std::move(job)});
    }
    plan.points.push_back(std::move(planned));
    if (on_point) on_point(i + 1, points.size());
  }
  const auto cheaper = [](const Costed& a, const Costed& b) { return a.cost < b.cost; };
  std::stable_sort(to_run.begin(), to_run.end(), cheaper);
  std::vector<Costed> bundled;
  for (std::vector<Costed>& group : Groups(std::move(to_run))) {
    std::vector<double> costs;
    for (const Costed& point : group) costs.push_back(point.cost);
    for (size_t next = 0; next < group.size();) {
      Costed& first = group[next];
      const size_t size = BundleSize(std::span(costs).subspan(next), sweep.launch,
                                     first.job.points.front().time_limit_s, options.times);
      for (size_t i = next + 1; i < next + size; ++i)
        first.job.points.push_back(std::move(group[i].job.points.front()));
      NameJob(first.job, options);
      bundled.push_back(std::move(first));
      next += size;
    }
  }
  std::stable_sort(bundled.begin(), bundled.end(), cheaper);
  for (Costed& job : bundled) plan.jobs.push_back(std::move(job.job));
  return plan;
}

int64_t AutoTimeLimitS(const predict::TimeModel& times, double cost) {
  constexpr double kMargin = 2;
  constexpr int64_t kStepS = 300;
  constexpr int64_t kLeastS = 600;
  const double seconds = times.Seconds(cost);
  if (seconds == 0) return 0;
  const double slow_s = kMargin * times.Spread() * seconds;
  if (slow_s > static_cast<double>(kMostSeconds - kStepS)) return kMostSeconds;
  return std::max(kLeastS, kStepS * static_cast<int64_t>(std::ceil(slow_s / static_cast<double>(kStepS))));
}

Job JobFor(const sweep::Sweep& sweep, const Point& point, const PlanOptions& options) {
  const sweep::Launch launch = sweep::LaunchOf(sweep, point);
  Job job;
  job.sweep = sweep.name;
  if (launch.definition) {
    job.definition = launch.definition->text;
  } else {
    job.trainer = launch.trainer.empty() ? options.trainer : launch.trainer;
  }
  job.nodes = launch.nodes;
  job.cpus = launch.cpus;
  job.gpus = GpusOf(launch);
  job.memory_limit_bytes = launch.memory_limit_bytes;
  job.meet_limit_s = launch.meet_limit_s;
  job.save_time_s = launch.save_time_s;
  job.keep_logs = launch.keep_logs;
  job.environment = launch.environment;
  job.setup = SetupOf(launch, options.trainer);
  if (launch.config != sweep.launch.config) job.config = launch.config;
  const auto measured = options.repeats.find(point.id);
  const int64_t repeat = measured == options.repeats.end() ? 1 : measured->second + 1;
  const int64_t time_limit_s =
      launch.time_limit_auto ? AutoTimeLimitS(options.times, predict::RelativeCost(point.spec)) : launch.time_limit_s;
  job.points = {{point.id, point.spec, time_limit_s, repeat}};
  return job;
}

void NameJob(Job& job, const PlanOptions& options) {
  std::vector<std::string> ids;
  ids.reserve(job.points.size());
  for (const JobPoint& point : job.points) ids.push_back(point.id);
  job.key = JobKey(options.key_name.empty() ? job.sweep : options.key_name, ids, options.attempts);
  job.job_dir = options.jobs_dir / job.key;
}

void PlaceCheckpointFiles(Point& point, const std::filesystem::path& folder, const MeasurementKey& measured_as) {
  std::string& dir = point.spec.checkpoint_dir;
  if (dir.empty()) return;
  const std::string apart =
      measured_as == MeasurementKey() ? "" : "-" + Hex(Hash(DumpJson({measured_as.campaign, measured_as.setup})));
  dir = folder / dir / (point.id + apart);
}

std::string JobKey(const std::string& sweep_name, const std::vector<std::string>& point_ids,
                   const std::map<std::string, int64_t>& attempts) {
  // JSON keeps the parts apart, whatever characters the name has.
  Json parts = Json::array({sweep_name});
  for (const std::string& id : point_ids) {
    const auto it = attempts.find(id);
    parts.push_back({id, it == attempts.end() ? 0 : it->second});
  }
  return "rl-" + Hex(Hash(DumpJson(parts)));
}

RunSpec MemoryRelevant(const RunSpec& spec) {
  RunSpec key = Without(spec, Field::kSparesMemory);
  for (const Field& field : Fields()) {
    const auto* number = std::get_if<double RunSpec::*>(&field.member);
    if (field.Has(Field::kMemoryByBeing) && number != nullptr) key.*(*number) = spec.*(*number) > 0 ? 1 : 0;
  }
  return key;
}

}  // namespace ridgeline::plan
