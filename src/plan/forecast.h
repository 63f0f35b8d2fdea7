// A sweep's points on a described device, as `ridgeline predict` prints them. Nothing was run.
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
#include "predict/device.h"
#include "predict/framework.h"
#include "predict/step_model.h"
#include "run/measurement.h"

namespace ridgeline::plan {

struct PointForecast {
  Verdict verdict = Verdict::kFits;
  int64_t peak_bytes = 0;  // for each GPU
  predict::StepForecast step;
  std::map<std::string, int64_t> by_category = {};  // parts of the peak; empty if the framework's model gives none
  std::string as = {};                              // name of the framework; empty: the trainer's steps are not known
  std::string basis = {};                           // for a framework other than ours, in words
  std::string why_not = {};                         // why it is not predicted; empty: it is
  std::string first_from = {};                      // the source of the first iteration's time; empty: it is assumed
};

// A step's rates per GPU: tokens, and the model's FLOPs without recomputation. Causal attention counts as half, or
// (`noncausal`) as the full square. 0 and nothing if not known, as for processors. A format that the device emulates
// has no share of its peak.
struct GpuRates {
  double tokens_per_s = 0;
  std::optional<double> tflops = {};
  std::optional<double> mfu = {};
  std::optional<double> tflops_noncausal = {};
  std::optional<double> mfu_noncausal = {};
  std::optional<double> peak_tflops = {};  // `mfu` is a share of this
};
GpuRates RatesOn(const RunSpec& spec, const predict::StepForecast& step, const predict::Device& device);
// Returns "57.0% of 989" (TFLOP/s of the peak); empty if there is no peak.
std::string MfuText(const GpuRates& rates);

// The cost of a point's runs, including the first iteration and warm-up.
struct RunCost {
  double seconds = 0;
  double machine_hours = 0;
  double kilowatt_hours = 0;  // of its GPUs at their power limit
  double dollars = 0;         // 0: the device has no price
};

// Returns the cost of all repeats of a spec. A step takes `step_ns`; starting and the first step take `cold_ns` more.
RunCost CostOfRuns(const RunSpec& spec, double step_ns, double cold_ns, const predict::Device& device);

// Returns the price of a machine's hour: on demand, else reserved; nullptr if the device has neither.
const predict::DeviceFigure* PriceOf(const predict::Device& device);

// In USD, for the machines that the spec's ranks take; 0: the device has no price.
double DollarsABillionTokens(const RunSpec& spec, const predict::StepForecast& step, const predict::Device& device);

// Returns one forecast for each point, in order. Each point runs on as many of the device's GPUs as it has ranks; its
// own `device` and `gpu` are ignored. A point is predicted with the framework of its trainer. A point without one, or
// beyond what the framework models, is not predicted. Specs that differ only in fields that do not change memory share
// a forecast. Throws Error with the point's id if the device lacks a figure that is needed.
std::vector<PointForecast> ForecastPoints(const sweep::Sweep& sweep, const std::vector<Point>& points,
                                          const predict::Device& device, const predict::Frameworks& frameworks,
                                          const OnPoint& on_point = {});

// Returns the memory model of a rank on the device, for all planning. The references must outlive it.
Forecaster ForecasterOn(const predict::Device& device, const predict::Framework& framework);

// Returns one row for each point: its fields, memory and verdict, and the step with its interval. Then the tokens per
// second of all ranks (steady: of a step; cold: of all the spec's steps, including the first). Then the shares that
// make up the step with the largest of them, and the extra time of the first iteration. If the device has a price, also
// the cost of a billion tokens. For programs, also the cost of the point's runs.
Table ForecastTable(const sweep::Sweep& sweep, const std::vector<Point>& points,
                    const std::vector<PointForecast>& forecasts, const predict::Device& device, Audience audience);

// Forecasts as results, which reports show beside measured ones. Each is of a point as the device's GPUs, or its
// processors, would run it, for the campaign kPredictedCampaign and a setup that names the device. Leaves out points
// that are not predicted. Throws Error(kInvalidInput) if a point cannot run there.
struct Predictions {
  std::vector<Point> points;
  std::vector<RunResult> results;  // provenance: predicted; what is not a figure of a run is in the evidence
  MeasurementKey predicted_as;
};
// Returns the published figures of the same points that the sweep states, as results of provenance published.
Predictions PublishedOf(const sweep::Sweep& sweep, const std::vector<Point>& points, const predict::Device& device,
                        const std::string& framework, int64_t unix_ns);
inline constexpr const char* kPublishedCampaign = "published";
inline constexpr const char* kPredictedCampaign = "predicted";
// Returns one for each framework with which points are predicted.
std::vector<Predictions> PredictionsOf(const std::vector<Point>& points, const std::vector<PointForecast>& forecasts,
                                       const predict::Device& device, int64_t unix_ns);

// Returns one row for each op and phase, the longest first.
Table ForecastOps(const predict::StepForecast& step, Audience audience);

// Says in a sentence how long the points that fit would take in all, and how reliable these figures are.
std::string ForecastSummary(const std::vector<Point>& points, const std::vector<PointForecast>& forecasts,
                            const predict::Device& device);

}  // namespace ridgeline::plan
