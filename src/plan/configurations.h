// Tries ways to train a model on a described device one by one: what is split, the format of the products, what is
// recomputed, and batches up to the largest that fits. Memory is planned, or estimated for another trainer. Times are
// the step model's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "plan/memory_limit.h"
#include "predict/device.h"
#include "predict/framework.h"
#include "predict/step_model.h"
#include "ridgeline/run.h"

namespace ridgeline::plan {

// What is to be trained, in any way.
struct TrainedModel {
  Json model;              // the fields of a spec that define the model: {"model": "llama-8b"}, or a shape
  int64_t seq_length = 0;  // tokens
  std::string state_precision = "fp32";  // for master weights and moments
  double grad_clip = 1;                  // largest norm of gradients; 0: no limit
};

// The name that a spec has for the framework's trainer.
std::string TrainerOf(const predict::Framework& framework);

struct AdvisedPoint {
  RunSpec spec;
  int64_t peak_bytes = 0;  // of a GPU; 0: not computed yet
  predict::StepForecast step = {};

  // Tokens per second of each GPU in steady state.
  double rate() const { return step.steady_tokens_per_s(spec) / static_cast<double>(spec.ranks); }
};

// One way to train, with its batches.
struct TriedWay {
  ShardMode shard = ShardMode::kNone;
  Precision precision = Precision::kBf16;
  Checkpointing checkpointing;
  int64_t ranks = 1;
  int64_t shard_ranks = 0;                // ranks that share what is split, while each group has a copy (HSDP); 0: all
  int64_t bytes_of_one = 0;               // peak with a batch of 1
  int64_t largest = 0;                    // largest batch that fits; 0: not even 1
  std::vector<AdvisedPoint> points = {};  // batches that are powers of two and fit, and the largest
  bool fits() const { return largest > 0; }
};

class Configurations {
 public:
  // The references must outlive this object.
  Configurations(const TrainedModel& model, const predict::Device& device, const predict::Framework& framework);

  // Throws Error(kInvalidInput) for a model whose step is not known. `shard`: tries only this one; nothing: tries all.
  std::vector<TriedWay> Try(int64_t ranks, std::optional<ShardMode> shard = {}) const;
  // Returns the quickest among the largest batches that fit, which is nearly always the quickest of all.
  std::optional<AdvisedPoint> Quickest(int64_t ranks, std::optional<ShardMode> shard) const;

  RunSpec SpecOf(ShardMode shard, Precision precision, const Checkpointing& checkpointing, int64_t batch, int64_t ranks,
                 const Json& other = Json::object()) const;
  RunSpec SpecOf(const TriedWay& way, int64_t batch, const Json& other = Json::object()) const;
  // Returns `spec` with the fields of `other`.
  RunSpec With(const RunSpec& spec, const Json& other) const;
  int64_t BytesOf(const RunSpec& spec) const;
  predict::StepForecast StepOf(const RunSpec& spec) const;
  bool Fits(const RunSpec& spec) const { return BytesOf(spec) <= limit_.bytes; }
  const SlabLimit& limit() const { return limit_; }
  const predict::Device& device() const { return device_; }
  const std::vector<Precision>& precisions() const { return precisions_; }
  bool IsSupported(const std::string& field, std::string_view value) const;

 private:
  enum class Batches : uint8_t { kPowersToo, kLargestAlone };
  std::vector<TriedWay> Try(int64_t ranks, std::optional<ShardMode> shard, Batches batches) const;
  void TryWay(TriedWay& way, Batches batches) const;
  int64_t LargestThatFits(const TriedWay& way) const;

  const TrainedModel& model_;
  const predict::Device& device_;
  const predict::Framework& framework_;
  std::vector<Precision> precisions_;
  std::vector<Checkpointing> policies_;
  SlabLimit limit_;
};

// Returns "full", or "full over 8" if groups of 8 share what is split.
std::string SplitName(ShardMode shard, int64_t shard_ranks);

// Returns the points of all ways, the quickest first.
std::vector<AdvisedPoint> FittingPoints(const std::vector<TriedWay>& ways);

}  // namespace ridgeline::plan
