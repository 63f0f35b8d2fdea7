// Predicts how long a step takes on a described device, from the step's own program. Calls run in program order. Each
// takes the time of its arithmetic or of its memory traffic, whichever is longer. Collectives have a stream of their
// own. docs/prediction-model.md has the terms and their sources. Nothing is run, and no device is needed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/comm/mesh.h"
#include "engine/device/trace.h"
#include "engine/step/call_shape.h"
#include "engine/step/timeline.h"
#include "predict/device.h"
#include "predict/framework.h"
#include "ridgeline/run.h"

namespace ridgeline::predict {

// The costs of one call of a step.
struct CallCost {
  const engine::OpDef* op = nullptr;
  engine::Phase phase = engine::Phase::kForward;
  engine::MathFormat format = engine::MathFormat::kF32;
  double flops = 0;
  double bytes = 0;         // read and written, scratch included
  double spared_bytes = 0;  // more, in two passes: of numbers that only this engine's op neither stores nor reads again
  double wire_bytes = 0;    // sent to other ranks
  double tiles = 1;         // TileShare of a product
  int32_t flight = -1;      // joins a collective and its landing
  int32_t layer = -1;       // -1: outside the layers
  engine::Collective collective = engine::Collective::kNone;
  double collective_bytes = 0;                      // a rank's input of a collective
  engine::RankGroup group = {};                     // among which it is
  engine::MeshAxes axes = engine::MeshAxes::All();  // along which that group lies
  bool is_mean = false;                             // of gradients
  // The ranks with copies of this part of the gradients, whose average this engine takes once a step, and not after
  // this call. Other programs take it in every micro-step. One rank: there is nothing more to average.
  engine::RankGroup copies = {};
  int32_t micro_step = 0;
  engine::OpKind kind = engine::OpKind::kPass;
  bool is_emulated = false;      // a product in a format that the device cannot multiply
  engine::CallShape shape = {};  // only if the device has measured calls

  // Whether the framework's step has two passes in this call's place.
  bool IsTwo(const Framework& framework) const { return framework.quantizes_apart && spared_bytes > 0; }
};

struct StepCosts {
  RunSpec spec;
  std::vector<CallCost> calls;  // in program order
};

// Returns the costs of one rank's step on the device's GPU. Ignores `device` and `gpu` of the spec, which must be
// canonical and checked.
StepCosts CostsOf(RunSpec spec, const Device& device);

// All calls of one op in one phase.
struct ForecastLine {
  std::string_view op;
  std::string_view phase;  // "forward", "recompute", "backward" or "optimizer"
  int64_t calls = 0;
  double ns = 0;
  double compute_ns = 0;  // of the calls that are compute-bound
};

// Name of the line with the wait for the slowest rank.
inline constexpr std::string_view kStragglers = "stragglers";

// What a predicted time is based on, in words.
constexpr std::string_view ClockBasis(bool calibrated) {
  return calibrated ? "predicted, calibrated" : "predicted, extrapolated";
}

// Why a step has no interval, in words.
inline constexpr std::string_view kNoInterval =
    "no measured row is of processors that nobody calibrated, of fp32, TF32, 4 bits or emulated formats on GPUs, of "
    "tensor-parallel ranks, or of steps that launches bound";

struct StepForecast {
  double step_ns = 0;  // the sum of the next four
  double compute_ns = 0;
  double memory_ns = 0;
  double exposed_ns = 0;   // waiting for data of other ranks, and for the slowest rank
  double straggle_ns = 0;  // the part of exposed_ns that waits for the slowest rank
  double launch_ns = 0;
  double communication_ns = 0;  // of all collectives, hidden or not
  double first_ns = 0;          // extra time of the first iteration
  double start_ns = 0;          // process start before it, with a GPU: libraries, first weights
  // 90 % of such steps lie between step_ns / spread and step_ns * spread, by published rows or measured calls. Nothing
  // if no row is of such a step (kNoInterval).
  std::optional<double> spread;
  bool calibrated = false;          // all terms that matter were measured on the device, at such shapes
  bool emulated = false;            // some products are in a format that the device cannot multiply
  double extrapolated = 0;          // share of the step in calls outside the device's measured range
  std::string_view bound;           // "compute", "memory", "communication" or "launches": the largest
  std::vector<ForecastLine> lines;  // the longest first

  // The time of a run that is not in its steps.
  double cold_ns() const { return start_ns + first_ns; }

  // Holds the step time in 90 of 100 cases. Nothing if that is not known.
  struct Interval {
    double low_ns = 0, high_ns = 0;
  };
  std::optional<Interval> interval() const {
    return spread ? std::optional(Interval{step_ns / *spread, step_ns * *spread}) : std::nullopt;
  }

  // Tokens per second of all ranks: of a steady step, and over the whole run with first iteration and warm-up.
  double steady_tokens_per_s(const RunSpec& spec) const;
  double cold_tokens_per_s(const RunSpec& spec) const;
};

// Predicts a step on the device without tracing all of it. Layers and micro-steps repeat, so a few of each are traced,
// and priced with and without one of them; the difference is what each further one adds. Takes a fraction of a
// millisecond for any model. The spec must be canonical and checked. Throws Error(kInvalidInput) if the device lacks a
// figure that the step needs, such as the peak of a format or the network between machines.
StepForecast PredictStep(const RunSpec& spec, const Device& device, const Framework& framework = {});

// The same for a step that is priced several times: it is traced once.
class TracedStep {
 public:
  TracedStep(const RunSpec& spec, const Device& device);
  // REQUIRES: `device` is the one that it was traced for.
  StepForecast Price(const Device& device, const Framework& framework = {}) const;

 private:
  // The traces: with and without one of the repeated layers, each with and without one of the repeated micro-steps.
  struct Layers {
    StepCosts less, more;  // without and with that layer; `less` is empty if all layers were traced
  };
  StepForecast PriceLayers(const Layers& layers, const Device& device, const Framework& framework) const;
  Layers fewer_, all_;      // without and with that micro-step; fewer_ is empty if all were traced
  double layers_ = 0;       // how often the difference of `more` and `less` counts
  double micro_steps_ = 0;  // the same for all_ and fewer_
};

// The expected largest of `count` standard normal numbers, within 0.03; 0 for one number. (Blom, "Statistical Estimates
// and Transformed Beta-Variables", 1958: the quantile at (n - 3/8) / (n + 1/4).)
double ExpectedLargest(int64_t count);

// Predicts the step from all of its calls. If `timeline` is given, it gets each call's time.
StepForecast Forecast(const StepCosts& costs, const Device& device, const Framework& framework = {},
                      engine::Timeline* timeline = nullptr);

// The share of its ceiling that a product of this shape reaches because of its tiles: the last wave is not full, tiles
// at the edges compute unused values, and each tile has a prologue and an epilogue. Takes the best of several tile
// sizes, as libraries do.
double TileShare(int64_t m, int64_t n, int64_t k, int64_t multiprocessors);

// Seconds of a ring collective in which each rank sends `wire_bytes`: (n - 1) / n of the whole, twice that for an
// all-reduce.
double CollectiveSeconds(double wire_bytes, bool all_reduce, engine::RankGroup group, const Device& device,
                         const Efficiency& efficiency);

}  // namespace ridgeline::predict
