// A sweep's points on a described device: what `ridgeline predict` prints. Nothing of it was run.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/table.h"
#include "plan/plan.h"
#include "plan/show.h"
#include "predict/clock.h"
#include "predict/device.h"
#include "predict/framework.h"
#include "run/measurement.h"

namespace ridgeline {

struct PointForecast {
  Verdict verdict = Verdict::kFits;
  int64_t peak_bytes = 0;  // of a GPU
  StepForecast step;
  std::map<std::string, int64_t> by_category = {};  // of the peak; empty where the framework's model says none
  std::string as = {};                              // the framework; empty: nobody knows the trainer's steps
  std::string basis = {};                           // of another framework than ours, in words
  std::string why_not = {};                         // it is not predicted
  std::string first_from = {};                      // who says what the first iteration takes; empty: it is assumed
};

// What a step comes to on each GPU: tokens, and the model's FLOPs without recomputation, causal attention counted as
// half, or (`noncausal`) over the full square. 0 and nothing where it is not known, as of processors; of a format that
// the device emulates there is no share of its peak.
struct GpuRates {
  double tokens_per_s = 0;
  std::optional<double> tflops = {};
  std::optional<double> mfu = {};
  std::optional<double> tflops_noncausal = {};
  std::optional<double> mfu_noncausal = {};
  std::optional<double> peak_tflops = {};  // of which `mfu` is a share
};
GpuRates RatesOn(const RunSpec& spec, const StepForecast& step, const Device& device);
// "57.0% of 989", of the peak in TFLOP/s; empty where it has none.
std::string MfuText(const GpuRates& rates);

// What the runs of a point come to, its first iteration and warm-up included.
struct RunCost {
  double seconds = 0;
  double machine_hours = 0;
  double kilowatt_hours = 0;  // of its GPUs at their limit
  double dollars = 0;         // 0: the device has no price
};

// Of all of a spec's repeats, where a step takes so long, and starting and the first step so much more.
RunCost CostOfRuns(const RunSpec& spec, double step_ns, double cold_ns, const Device& device);

// What an hour of a machine costs: on demand, else reserved; nothing where the device says neither.
const DeviceFigure* PriceOf(const Device& device);

// USD, of the machines that the spec's ranks take; 0: the device has no price.
double DollarsABillionTokens(const RunSpec& spec, const StepForecast& step, const Device& device);

// One a point, in their order, on as many of the device's GPUs as a point has ranks; its own `device` and `gpu` do not
// count. A point is predicted as the framework of its trainer; one that has none, or is beyond it, is not predicted.
// Specs that differ in nothing that changes memory share one. Throws Error with the point's id where a device does not
// say what it needs.
std::vector<PointForecast> ForecastPoints(const Sweep& sweep, const std::vector<Point>& points, const Device& device,
                                          const Frameworks& frameworks, const OnPoint& on_point = {});

// The memory of a spec as a rank on the device would run it, for all who plan for it. What is given must outlive it.
Forecaster ForecasterOn(const Device& device, const Framework& framework);

// One row a point: its fields, memory and verdict, the step with its interval, tokens a second of all ranks (steady: of
// a step; cold: of all the steps that the spec has, the first included), the shares that make up the step and the
// largest of them, what the first iteration takes more, and where the device has a price, what a billion tokens cost.
// For programs what the point's runs take, too.
Table ForecastTable(const Sweep& sweep, const std::vector<Point>& points, const std::vector<PointForecast>& forecasts,
                    const Device& device, Audience audience);

// Forecasts as results, which reports show beside measured ones: of each point as the device's GPUs, or its processors,
// would run it, for the campaign kPredictedCampaign and a setup that names the device. Points that are not predicted
// are left out. Throws Error(kInvalidInput) where a point cannot run there.
struct Predictions {
  std::vector<Point> points;
  std::vector<RunResult> results;  // provenance: predicted; what is no figure of a run stands in its evidence
  MeasurementKey predicted_as;
};
// What the sweep says that others published of the same points, as results of provenance published.
Predictions PublishedOf(const Sweep& sweep, const std::vector<Point>& points, const Device& device,
                        const std::string& framework, int64_t unix_ns);
inline constexpr const char* kPublishedCampaign = "published";
inline constexpr const char* kPredictedCampaign = "predicted";
// One for each framework that a point is predicted as.
std::vector<Predictions> PredictionsOf(const std::vector<Point>& points, const std::vector<PointForecast>& forecasts,
                                       const Device& device, int64_t unix_ns);

// One row an op and phase, the longest first.
Table ForecastOps(const StepForecast& step, Audience audience);

// What the points that fit would take in all, and how far these figures can be trusted, in a sentence.
std::string ForecastSummary(const std::vector<Point>& points, const std::vector<PointForecast>& forecasts,
                            const Device& device);

}  // namespace ridgeline
