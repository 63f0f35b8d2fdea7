// Ways to train a model on a described device, tried one by one: what is split, the format of the products, what is
// computed again, and batches up to the largest that fits. Memory is planned, or estimated as another trainer's, and
// times are the clock's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "plan/memory.h"
#include "predict/clock.h"
#include "predict/device.h"
#include "predict/framework.h"
#include "ridgeline/run.h"

namespace ridgeline {

// What is to be trained, whichever way.
struct TrainedModel {
  Json model;                            // a spec's fields that say which model: {"model": "llama-8b"}, or a shape
  int64_t seq_length = 0;                // tokens
  std::string state_precision = "fp32";  // of master weights and moments
  double grad_clip = 1;                  // the largest norm of gradients; 0: none
};

// A trainer that the framework stands for, as a spec has it.
std::string TrainerOf(const Framework& framework);

struct AdvisedPoint {
  RunSpec spec;
  int64_t peak_bytes = 0;  // of a GPU; 0: not asked yet
  StepForecast step = {};

  // Tokens a second of a GPU, in steady state.
  double rate() const { return step.steady_tokens_per_s(spec) / static_cast<double>(spec.ranks); }
};

// One way, over its batches.
struct TriedWay {
  std::string shard, precision, checkpointing;
  int64_t ranks = 1;
  int64_t shard_ranks = 0;                // that share what is split, each group with a copy (HSDP); 0: all
  int64_t bytes_of_one = 0;               // with a batch of 1
  int64_t largest = 0;                    // batch that fits; 0: not even 1
  std::vector<AdvisedPoint> points = {};  // powers of two that fit, and the largest
  bool fits() const { return largest > 0; }
};

class Configurations {
 public:
  // What is given must outlive it.
  Configurations(const TrainedModel& model, const Device& device, const Framework& framework);

  // Throws Error(kInvalidInput) for a model that no step is known of. `shard`: of this one alone; empty: of all.
  std::vector<TriedWay> Try(int64_t ranks, std::string_view shard = "") const;
  // The quickest of the largest batches that fit, which are nearly always the quickest of all.
  std::optional<AdvisedPoint> Quickest(int64_t ranks, std::string_view shard) const;

  RunSpec SpecOf(std::string_view shard, std::string_view precision, std::string_view checkpointing, int64_t batch,
                 int64_t ranks, const Json& other = Json::object()) const;
  RunSpec SpecOf(const TriedWay& way, int64_t batch, const Json& other = Json::object()) const;
  // The same way as `spec`, but for `other`.
  RunSpec With(const RunSpec& spec, const Json& other) const;
  int64_t BytesOf(const RunSpec& spec) const;
  StepForecast StepOf(const RunSpec& spec) const;
  bool Fits(const RunSpec& spec) const { return BytesOf(spec) <= limit_.bytes; }
  const SlabLimit& limit() const { return limit_; }
  const Device& device() const { return device_; }
  const std::vector<std::string>& precisions() const { return precisions_; }
  bool IsSupported(const std::string& field, const std::string& value) const;

 private:
  enum class Batches : uint8_t { kPowersToo, kLargestAlone };
  std::vector<TriedWay> Try(int64_t ranks, std::string_view shard, Batches batches) const;
  void TryWay(TriedWay& way, Batches batches) const;
  int64_t LargestThatFits(const TriedWay& way) const;

  const TrainedModel& model_;
  const Device& device_;
  const Framework& framework_;
  std::vector<std::string> precisions_, policies_;
  SlabLimit limit_;
};

// "full", or "full over 8" where groups of 8 share what is split.
std::string SplitName(const std::string& shard, int64_t shard_ranks);

// Of all ways, the quickest first.
std::vector<AdvisedPoint> FittingPoints(const std::vector<TriedWay>& ways);

}  // namespace ridgeline
