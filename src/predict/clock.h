// How long a step takes on a described device, by the step's own program: every call that it records takes the longer
// of what its products and its bytes take, in the order of the program, with collectives on a stream of their own. The
// terms and where they are from: docs/prediction-model.md. Nothing is run, and no device is needed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/device/trace.h"
#include "engine/step/call_shape.h"
#include "engine/step/timeline.h"
#include "predict/device.h"
#include "predict/framework.h"
#include "ridgeline/run.h"

namespace ridgeline {

// One call of a step, as far as its time goes.
struct CallCost {
  const OpDef* op = nullptr;
  Phase phase = Phase::kForward;
  MathFormat format = MathFormat::kF32;
  double flops = 0;
  double bytes = 0;       // to and from memory, scratch too
  double wire_bytes = 0;  // to other ranks
  double tiles = 1;       // TileShare of a product
  int32_t flight = -1;    // of a collective and of its landing
  int32_t layer = -1;     // -1: outside the layers
  Collective collective = Collective::kNone;
  double collective_bytes = 0;  // that a rank puts into a collective
  int32_t micro_step = 0;
  enum class Kind : uint8_t {
    kPass,
    kProduct,
    kForwardAttention,
    kBackwardAttention,
    kTakeOff,  // of a collective that flies
    kAtOnce,   // a collective that is waited for
    kLanding
  };
  Kind kind = Kind::kPass;
  bool is_emulated = false;  // a product of a format that the device does not multiply
  CallShape shape = {};      // where the device has calls that were measured
};

struct StepCosts {
  RunSpec spec;
  std::vector<CallCost> calls;  // in the order of the program
};

// Of a rank's step on the device's GPU; the spec's own `device` and `gpu` do not count. The spec must be canonical and
// checked.
StepCosts CostsOf(RunSpec spec, const Device& device);

// All calls of one op in one phase.
struct ForecastLine {
  std::string_view op;
  std::string_view phase;  // "forward", "recompute", "backward" or "optimizer"
  int64_t calls = 0;
  double ns = 0;
  double compute_ns = 0;  // of those calls that products bound
};

// The line of what a step waits for the slowest of its ranks.
inline constexpr std::string_view kStragglers = "stragglers";

// How far a time of the clock can be trusted, in words.
constexpr std::string_view ClockBasis(bool calibrated) {
  return calibrated ? "predicted, calibrated" : "predicted, extrapolated";
}

// Why a step has no interval, in words.
inline constexpr std::string_view kNoInterval =
    "no measured row is of processors that nobody calibrated, of fp32, TF32, 4 bits or emulated formats on GPUs, or of "
    "steps that launches bound";

struct StepForecast {
  double step_ns = 0;  // the sum of the next four
  double compute_ns = 0;
  double memory_ns = 0;
  double exposed_ns = 0;   // waiting for other ranks: for what they send, and for the slowest of them
  double straggle_ns = 0;  // of that, for the slowest
  double launch_ns = 0;
  double communication_ns = 0;  // on its own stream, hidden or not
  double first_ns = 0;          // what the first iteration takes more
  double start_ns = 0;          // and what a process takes before it, with a GPU: libraries, first weights
  // By which, and times which, 90 of 100 such steps lie, as published rows or measured calls tell. Nothing: no row is
  // of such a step (kNoInterval), and nobody knows.
  std::optional<double> spread;
  bool calibrated = false;          // all that counts was measured on the device, of such shapes; else extrapolated
  bool emulated = false;            // some products are of a format that the device does not multiply, as in a result
  double extrapolated = 0;          // of a device whose calls were measured: the step's share in calls beyond them
  std::string_view bound;           // "compute", "memory", "communication" or "launches": the largest of the four
  std::vector<ForecastLine> lines;  // the longest first

  // What a run takes beside its steps.
  double cold_ns() const { return start_ns + first_ns; }

  // The step in 90 of 100 cases. Nothing: nobody knows.
  struct Interval {
    double low_ns = 0, high_ns = 0;
  };
  std::optional<Interval> interval() const {
    return spread ? std::optional(Interval{step_ns / *spread, step_ns * *spread}) : std::nullopt;
  }

  // Of all ranks: of a step, and of all that the spec has, warm-up and the first one included.
  double steady_tokens_per_s(const RunSpec& spec) const;
  double cold_tokens_per_s(const RunSpec& spec) const;
};

// Of a step on the device, without tracing all of it: its layers repeat, and so do its micro-steps, so that some of
// each are traced, and priced with and without one of each; what that one adds counts as often as there are more. A
// fraction of a millisecond for any model. The spec must be canonical and checked. Throws Error(kInvalidInput) where
// the device says nothing of what the step needs: the peak of a format that it multiplies, the network between
// machines.
StepForecast PredictStep(const RunSpec& spec, const Device& device, const Framework& framework = {});

// The same for a step that is priced again and again: it is traced once.
class TracedStep {
 public:
  TracedStep(const RunSpec& spec, const Device& device);
  // `device` is the one that it was traced for.
  StepForecast Price(const Device& device, const Framework& framework = {}) const;

 private:
  // Without one of the layers that are alike, without one of such micro-steps, without both, and with all.
  struct Layers {
    StepCosts less, more;  // less: empty where all layers were traced
  };
  StepForecast PriceLayers(const Layers& layers, const Device& device, const Framework& framework) const;
  Layers fewer_, all_;      // micro-steps; fewer_ is empty where all were traced
  double layers_ = 0;       // how often what `more` has beyond `less` counts
  double micro_steps_ = 0;  // the same of `all_` and `fewer_`
};

// The mean of the largest of `count` standard normal numbers, within 0.03; 0 of one. (Blom, "Statistical Estimates and
// Transformed Beta-Variables", 1958: the quantile at (n - 3/8) / (n + 1/4).)
double ExpectedLargest(int64_t count);

// The same of all of its calls, which `timeline` gets, too, where one is given.
StepForecast Forecast(const StepCosts& costs, const Device& device, const Framework& framework = {},
                      Timeline* timeline = nullptr);

// What a product of this shape gets of its ceiling, for its tiles: the last wave of them is not full, those at its
// edges compute what nobody wants, and each begins and ends. Of the best of several tiles, as libraries choose one.
double TileShare(int64_t m, int64_t n, int64_t k, int64_t multiprocessors);

// Ranks that have a collective together: every `stride`-th of all.
struct RankGroup {
  int64_t ranks = 1;
  int64_t stride = 1;
};

// Seconds of a collective that sends `wire_bytes` a rank (ring: (n - 1) / n of the whole, of an all-reduce twice),
// between such GPUs.
double CollectiveSeconds(double wire_bytes, bool all_reduce, RankGroup group, const Device& device,
                         const Efficiency& efficiency);

}  // namespace ridgeline
