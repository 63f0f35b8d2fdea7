#include "plan/configurations.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "predict/memory_forecast.h"
#include "run/names.h"
#include "run/spec.h"

namespace ridgeline::plan {
namespace {

constexpr int64_t kLargestBatch = 1024;

}  // namespace

Configurations::Configurations(const TrainedModel& model, const predict::Device& device,
                               const predict::Framework& framework)
    : model_(model), device_(device), framework_(framework) {
  for (const auto& [peak, precision] : {std::pair{"peaks.bf16", Precision::kBf16},
                                        {"peaks.fp8", Precision::kFp8},
                                        {"peaks.mxfp8", Precision::kMxfp8},
                                        {"peaks.fp4", Precision::kNvfp4}}) {
    if (device.Has(peak) && IsSupported("precision", NameOf(precision))) precisions_.push_back(precision);
  }
  using Policy = Checkpointing::Policy;
  for (const Policy policy : {Policy::kNone, Policy::kSelective, Policy::kFull}) {
    const std::string name(NameOf(policy));
    const bool is_known = framework.is_ours() || policy == Policy::kNone || framework.recomputes.contains(name);
    if (is_known && IsSupported("checkpointing", name)) policies_.push_back({policy});
  }
  limit_ = SlabLimitOn({}, device);
}

bool Configurations::IsSupported(const std::string& field, std::string_view value) const {
  const auto known = framework_.supports.find(field);
  return known == framework_.supports.end() || std::ranges::find(known->second, value) != known->second.end();
}

std::vector<TriedWay> Configurations::Try(int64_t ranks, std::optional<ShardMode> shard) const {
  return Try(ranks, shard, Batches::kPowersToo);
}

std::optional<AdvisedPoint> Configurations::Quickest(int64_t ranks, std::optional<ShardMode> shard) const {
  std::vector<AdvisedPoint> points = FittingPoints(Try(ranks, shard, Batches::kLargestAlone));
  if (points.empty()) return std::nullopt;
  return std::move(points.front());
}

std::vector<TriedWay> Configurations::Try(int64_t ranks, std::optional<ShardMode> shard, Batches batches) const {
  // With one micro-step, `gradients` is the same as `optimizer`, except in programs that hold split weights between
  // steps.
  std::vector<ShardMode> shards = {ShardMode::kNone};
  if (ranks > 1) shards = {ShardMode::kNone, ShardMode::kOptimizer, ShardMode::kFull};
  if (ranks > 1 && framework_.memory.splits_weights) shards.insert(shards.end() - 1, ShardMode::kGradients);
  std::erase_if(shards, [&](ShardMode each) {
    return (shard && each != *shard) || (ranks > 1 && !IsSupported("shard", NameOf(each)));
  });
  std::vector<TriedWay> ways;
  const auto add = [&](ShardMode each, int64_t shard_ranks) {
    for (const Precision precision : precisions_) {
      for (const Checkpointing& policy : policies_) {
        ways.push_back({.shard = each,
                        .precision = precision,
                        .checkpointing = policy,
                        .ranks = ranks,
                        .shard_ranks = shard_ranks});
        TryWay(ways.back(), batches);
      }
    }
  };
  // Shards within a machine, copies across machines.
  const int64_t machine = device_.gpus();
  const bool is_hybrid = machine > 1 && ranks > machine && ranks % machine == 0;
  for (const ShardMode each : shards) {
    add(each, 0);
    if (is_hybrid && (each == ShardMode::kFull || each == ShardMode::kGradients)) add(each, machine);
  }
  return ways;
}

void Configurations::TryWay(TriedWay& way, Batches batches) const {
  way.bytes_of_one = BytesOf(SpecOf(way, 1));
  way.largest = LargestThatFits(way);
  const auto add = [&](int64_t batch) {
    AdvisedPoint& point = way.points.emplace_back();
    point.spec = SpecOf(way, batch);
    point.step = StepOf(point.spec);
  };
  for (int64_t batch = 1; batches == Batches::kPowersToo && batch < way.largest; batch *= 2) add(batch);
  if (way.fits()) add(way.largest);
}

// Memory is nearly linear in the batch, and never shrinks, so a few plans find the limit.
int64_t Configurations::LargestThatFits(const TriedWay& way) const {
  if (way.bytes_of_one > limit_.bytes) return 0;
  int64_t fits = 1;
  int64_t too_much = kLargestBatch + 1;
  int64_t fits_bytes = way.bytes_of_one;
  int64_t batch = 2;
  while (too_much - fits > 1) {
    const int64_t bytes = BytesOf(SpecOf(way, batch));
    const double each = std::max(1.0, static_cast<double>(bytes - way.bytes_of_one) / static_cast<double>(batch - 1));
    if (bytes <= limit_.bytes) {
      fits = batch;
      fits_bytes = bytes;
    } else {
      too_much = batch;
    }
    if (too_much - fits <= 1) break;
    const double more = static_cast<double>(limit_.bytes - fits_bytes) / each;
    const auto guess = fits + static_cast<int64_t>(std::min(more, static_cast<double>(kLargestBatch)));
    batch = std::clamp(guess, fits + 1, too_much - 1);
  }
  return fits;
}

RunSpec Configurations::SpecOf(ShardMode shard, Precision precision, const Checkpointing& checkpointing, int64_t batch,
                               int64_t ranks, const Json& other) const {
  std::vector<Problem> problems;
  Json values = {{"trainer", TrainerOf(framework_)},
                 {"precision", precision},
                 {"checkpointing", checkpointing},
                 {"batch_size", batch},
                 {"seq_length", model_.seq_length},
                 {"state_precision", model_.state_precision},
                 {"grad_clip", model_.grad_clip},
                 {"ranks", ranks},
                 {"shard", shard},
                 {"device", "meta"},
                 {"gpu", device_.gpu}};
  values.update(model_.model);
  values.update(other);
  RunSpec spec = BuildSpec(values, problems);
  std::string why = problems.empty() ? predict::NotEstimated(framework_, spec) : problems.front().message;
  if (why.empty()) return spec;
  throw Error(ErrorKind::kInvalidInput, fmt::format("advise: {}", why));
}

RunSpec Configurations::SpecOf(const TriedWay& way, int64_t batch, const Json& other) const {
  Json values = {{"shard_ranks", way.shard_ranks}};
  values.update(other);
  return SpecOf(way.shard, way.precision, way.checkpointing, batch, way.ranks, values);
}

RunSpec Configurations::With(const RunSpec& spec, const Json& other) const {
  Json values = {{"shard_ranks", spec.shard_ranks}};
  values.update(other);
  return SpecOf(spec.shard, spec.precision, spec.checkpointing, spec.batch_size, spec.ranks, values);
}

int64_t Configurations::BytesOf(const RunSpec& spec) const {
  return framework_.plans ? predict::PredictMemory(spec).planned_peak_bytes : predict::PeakBytes(framework_, spec);
}

predict::StepForecast Configurations::StepOf(const RunSpec& spec) const {
  const auto [priced, as] = predict::AsPriced(framework_, spec);
  return predict::PredictStep(priced, device_, as);
}

std::string TrainerOf(const predict::Framework& framework) {
  return framework.trainers.empty() ? framework.name : framework.trainers.front();
}

std::string SplitName(ShardMode shard, int64_t shard_ranks) {
  return shard_ranks > 0 ? fmt::format("{} over {}", shard, shard_ranks) : std::string(NameOf(shard));
}

std::vector<AdvisedPoint> FittingPoints(const std::vector<TriedWay>& ways) {
  std::vector<AdvisedPoint> points;
  for (const TriedWay& way : ways) points.insert(points.end(), way.points.begin(), way.points.end());
  std::stable_sort(points.begin(), points.end(),
                   [](const AdvisedPoint& a, const AdvisedPoint& b) { return a.rate() > b.rate(); });
  return points;
}

}  // namespace ridgeline::plan
