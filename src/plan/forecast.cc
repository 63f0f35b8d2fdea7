#include "plan/forecast.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <deque>
#include <exception>
#include <limits>
#include <optional>
#include <set>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "plan/memory_limit.h"
#include "run/gpu_peaks.h"
#include "run/names.h"
#include "run/presets.h"
#include "run/spec.h"
#include "run/step_figures.h"
#include "sweep/launch.h"

namespace ridgeline::plan {
namespace {

predict::MemoryForecast MemoryOn(RunSpec spec, const predict::Device& device, const predict::Framework& framework) {
  spec.gpu = device.gpu;
  if (framework.plans) return predict::PredictMemory(spec);
  if (const std::string why = predict::NotEstimated(framework, spec); !why.empty())
    throw Error(ErrorKind::kInvalidInput, why);
  return {.planned_peak_bytes = predict::PeakBytes(framework, spec), .by_category = {}};
}

// A program of the user's that keeps our contract has no name by which a framework could know it.
const predict::Framework* FrameworkOf(const sweep::Sweep& sweep, const Point& point,
                                      const predict::Frameworks& frameworks) {
  const sweep::Launch launch = sweep::LaunchOf(sweep, point);
  const bool known = IsOurTrainer(launch) || launch.definition;
  return frameworks.Of(known ? point.spec.trainer : "");
}

PointForecast ForecastOf(const Point& point, const predict::Device& device, const predict::Framework& framework) {
  try {
    RunSpec spec = point.spec;
    spec.gpu = device.gpu;
    predict::MemoryForecast memory = MemoryOn(spec, device, framework);
    const int64_t peak_bytes = memory.planned_peak_bytes;
    const bool fits = peak_bytes <= SlabLimitOn(spec, device).bytes;
    const auto [priced, as] = predict::AsPriced(framework, spec);
    return {fits ? Verdict::kFits : Verdict::kOutOfMemory,
            peak_bytes,
            predict::PredictStep(priced, device, as),
            std::move(memory.by_category),
            framework.name,
            framework.Basis(device.gpu),
            "",
            device.Has("cold.first_iteration") ? "the file of " + device.name : framework.first_iteration_from};
  } catch (const Error& e) {
    throw Error(e.kind(), fmt::format("point {}: {}", point.id, e.message()), e.hint());
  }
}

// Returns in words what is known about the shares of the device that steps use.
std::string SharesFrom(const predict::Device& device) {
  for (const auto& [name, figure] : device.figures) {
    if (name.starts_with("efficiency.")) return "assumed, as far as its file says it";
  }
  return device.is_cpu() ? "assumed" : predict::Framework{}.efficiency_from;
}

using Column = std::pair<std::string, Cell>;

std::string TimeText(double ns) { return FormatDuration(std::llround(ns)); }

std::string IntervalText(const predict::StepForecast& step) {
  const auto interval = step.interval();
  return interval ? TimeText(interval->low_ns) + " … " + TimeText(interval->high_ns) : "unknown";
}

std::vector<Column> ColumnsForPeople(const RunSpec& spec, const PointForecast& forecast,
                                     const predict::Device& device) {
  const predict::StepForecast& step = forecast.step;
  const auto share = [&](double ns) { return fmt::format("{:.0f}%", 100 * ns / step.step_ns); };
  std::vector<Column> columns = {{"memory", FormatBytes(forecast.peak_bytes)},
                                 {"verdict", std::string(VerdictName(forecast.verdict))},
                                 {"predicted_step", TimeText(step.step_ns)},
                                 {"90%_interval", IntervalText(step)},
                                 {"steady_tokens/s", FormatCount(step.steady_tokens_per_s(spec))},
                                 {"cold_tokens/s", FormatCount(step.cold_tokens_per_s(spec))},
                                 {"compute", share(step.compute_ns)},
                                 {"memory_bound", share(step.memory_ns)},
                                 {"exposed", share(step.exposed_ns)},
                                 {"launches", share(step.launch_ns)},
                                 {"bound", std::string(step.bound) + (step.emulated ? ", emulated" : "")},
                                 {"first", "+" + TimeText(step.first_ns)}};
  const GpuRates rates = RatesOn(spec, step, device);
  if (!device.is_cpu()) {
    columns.emplace_back("tokens/s_a_GPU", FormatCount(rates.tokens_per_s));
    columns.emplace_back("TFLOP/s_a_GPU", rates.tflops ? Cell(fmt::format("{:.0f}", *rates.tflops)) : Cell());
    columns.emplace_back("MFU", MfuText(rates));
  }
  if (PriceOf(device) != nullptr) {
    columns.emplace_back("USD/1B tokens", fmt::format("{:.2f}", DollarsABillionTokens(spec, step, device)));
  }
  return columns;
}

std::vector<Column> ColumnsForPrograms(const RunSpec& spec, const PointForecast& forecast,
                                       const predict::Device& device) {
  const predict::StepForecast& step = forecast.step;
  const RunCost run = CostOfRuns(spec, step.step_ns, step.cold_ns(), device);
  const auto interval = step.interval();
  std::vector<Column> columns = {{"peak_bytes", forecast.peak_bytes},
                                 {"verdict", std::string(VerdictName(forecast.verdict))},
                                 {"step_ns", std::round(step.step_ns)},
                                 {"step_low_ns", interval ? Cell(std::round(interval->low_ns)) : Cell()},
                                 {"step_high_ns", interval ? Cell(std::round(interval->high_ns)) : Cell()},
                                 {"steady_tokens_per_s", step.steady_tokens_per_s(spec)},
                                 {"cold_tokens_per_s", step.cold_tokens_per_s(spec)},
                                 {"compute_ns", std::round(step.compute_ns)},
                                 {"memory_ns", std::round(step.memory_ns)},
                                 {"exposed_ns", std::round(step.exposed_ns)},
                                 {"launch_ns", std::round(step.launch_ns)},
                                 {"communication_ns", std::round(step.communication_ns)},
                                 {"bound", std::string(step.bound)},
                                 {"first_ns", std::round(step.first_ns)},
                                 {"run_s", run.seconds},
                                 {"machine_hours", run.machine_hours},
                                 {"kilowatt_hours", run.kilowatt_hours > 0 ? Cell(run.kilowatt_hours) : Cell()}};
  const GpuRates rates = RatesOn(spec, step, device);
  if (!device.is_cpu()) {
    const auto cell = [](const std::optional<double>& value) { return value ? Cell(*value) : Cell(); };
    columns.emplace_back("tokens_per_s_per_gpu", rates.tokens_per_s);
    columns.emplace_back("tflops_per_gpu", cell(rates.tflops));
    columns.emplace_back("mfu", cell(rates.mfu));
    columns.emplace_back("tflops_per_gpu_noncausal", cell(rates.tflops_noncausal));
    columns.emplace_back("mfu_noncausal", cell(rates.mfu_noncausal));
    columns.emplace_back("peak_tflops_per_gpu", cell(rates.peak_tflops));
  }
  if (PriceOf(device) != nullptr) {
    columns.emplace_back("usd", run.dollars);
    columns.emplace_back("usd_per_billion_tokens", DollarsABillionTokens(spec, step, device));
  }
  columns.emplace_back("basis",
                       forecast.basis.empty() ? std::string(predict::ClockBasis(step.calibrated)) : forecast.basis);
  columns.emplace_back("emulated", static_cast<int64_t>(step.emulated));
  return columns;
}

// Returns the point as the device's GPUs, or its processors, would run it.
Point OnDevice(const predict::Device& device, const Point& of_sweep) {
  Point point = of_sweep;
  point.spec.device = device.is_cpu() ? "cpu" : "cuda";
  point.spec.gpu = device.gpu;
  point.spec.communicator.clear();
  Canonicalize(point.spec);
  if (const std::vector<Problem> problems = CheckSpec(point.spec); !problems.empty()) {
    throw Error(ErrorKind::kInvalidInput,
                fmt::format("point {} cannot be one of {}: {}", of_sweep.id,
                            device.is_cpu() ? "a processor" : "gpu " + device.gpu, problems.front().message),
                "exclude it from the sweep, or predict it without --db");
  }
  point.id = PointId(point.spec);
  return point;
}

std::string SetupOn(const predict::Device& device, const std::string& framework) {
  const std::string trainer = framework == kOurTrainer ? "ridgeline-train" : framework;
  Json setup = ParseJson(SetupOf({trainer}, 0), "a setup");
  setup["predicted_on"] = device.name;
  return DumpJson(setup);
}

// Returns what is known of a result that nobody here ran, without its figures.
RunResult ResultOfNoRun(const Point& point, Provenance provenance, const predict::Device& device, int64_t unix_ns) {
  RunResult result;
  result.point_id = point.id;
  result.status = RunStatus::kOk;
  result.provenance = provenance;
  result.device = device.name;
  result.communicator = point.spec.communicator;
  result.parameters = CountParameters(point.spec);
  result.tokens_per_step = TokensAStep(point.spec);
  result.started_unix_ns = result.ended_unix_ns = unix_ns;
  return result;
}

// Returns a step's nanoseconds by op as a JSON object, in the form of a trainer's profile.
std::string OpTimes(const predict::StepForecast& step) {
  std::map<std::string_view, double> by_op;
  for (const predict::ForecastLine& line : step.lines) by_op[line.op] += line.ns;
  Json times = Json::object();
  for (const auto& [op, ns] : by_op) {
    if (ns > 0) times[std::string(op)] = std::llround(ns);
  }
  return DumpJson(times);
}

// Returns the interval of the cold throughput. REQUIRES: the step has one. The time of the first iteration comes from
// its source. If it is assumed, it may be zero or twice as much.
std::pair<double, double> ColdInterval(const RunSpec& spec, const PointForecast& forecast,
                                       const predict::StepForecast::Interval& interval) {
  const double unsure = forecast.first_from.empty() ? 1 : 0;
  predict::StepForecast slow = forecast.step;
  slow.step_ns = interval.high_ns;
  slow.first_ns *= 1 + unsure;
  predict::StepForecast fast = forecast.step;
  fast.step_ns = interval.low_ns;
  fast.first_ns *= 1 - unsure;
  return {slow.cold_tokens_per_s(spec), fast.cold_tokens_per_s(spec)};
}

RunResult ResultOf(const Point& point, const PointForecast& forecast, const predict::Device& device, int64_t unix_ns) {
  const predict::StepForecast& step = forecast.step;
  const auto whole = [](double value) { return std::to_string(std::llround(value)); };
  RunResult result = ResultOfNoRun(point, Provenance::kPredicted, device, unix_ns);
  result.emulated = step.emulated;
  result.memory.planned_peak_bytes = forecast.peak_bytes;
  result.memory.by_category = forecast.by_category;
  if (forecast.verdict == Verdict::kOutOfMemory) {
    const int64_t available = SlabLimitOn(point.spec, device).bytes;
    result.status = RunStatus::kSkippedPredictedOom;
    result.message = fmt::format("predicted to need {}, and {} {} has {}", FormatBytes(forecast.peak_bytes),
                                 device.is_cpu() ? "a rank on" : "a GPU of", device.name, FormatBytes(available));
    result.evidence = {{"wanted_bytes", std::to_string(forecast.peak_bytes)},
                       {"available_bytes", std::to_string(available)}};
    return result;
  }
  result.throughput = {step.steady_tokens_per_s(point.spec), step.cold_tokens_per_s(point.spec)};
  result.step_ns.median_ns = std::llround(step.step_ns);
  result.flops = ModelFlops(point.spec);
  result.step_ns.cv = std::numeric_limits<double>::quiet_NaN();  // the store keeps this as no value
  result.evidence = {
      {"basis", forecast.basis.empty() ? std::string(predict::ClockBasis(step.calibrated)) : forecast.basis},
      {"bound", std::string(step.bound)},
      {"communication_ns", whole(step.communication_ns)},
      {"compute_ns", whole(step.compute_ns)},
      {"exposed_ns", whole(step.exposed_ns)},
      {"first_from", forecast.first_from.empty() ? "assumed" : forecast.first_from},
      {"first_ns", whole(step.first_ns)},
      {"launch_ns", whole(step.launch_ns)},
      {"memory_ns", whole(step.memory_ns)},
      {"op_ns", OpTimes(step)}};
  if (const auto interval = step.interval()) {
    result.evidence["step_low_ns"] = whole(interval->low_ns);
    result.evidence["step_high_ns"] = whole(interval->high_ns);
    const auto [cold_low, cold_high] = ColdInterval(point.spec, forecast, *interval);
    result.evidence["cold_low_tokens_per_s"] = fmt::format("{:.6g}", cold_low);
    result.evidence["cold_high_tokens_per_s"] = fmt::format("{:.6g}", cold_high);
  }
  if (PriceOf(device) != nullptr) {
    result.evidence["usd_per_billion_tokens"] = fmt::format("{:.6g}", DollarsABillionTokens(point.spec, step, device));
  }
  return result;
}

}  // namespace

GpuRates RatesOn(const RunSpec& spec, const predict::StepForecast& step, const predict::Device& device) {
  GpuRates rates;
  if (device.is_cpu() || step.step_ns <= 0) return rates;
  rates.tokens_per_s = step.steady_tokens_per_s(spec) / static_cast<double>(spec.ranks);
  // The same peak as for a measured run, so that both are shares of one peak. For a GPU without one, the device's own
  // peak.
  const double own =
      device.Or(fmt::format("peaks.{}", spec.precision == Precision::kNvfp4 ? "fp4" : NameOf(spec.precision)), 0);
  const double peak = PeakFlops(device.gpu, spec.precision).value_or(own) / 1e12;
  const FlopFigures flops = ModelFlops(spec);
  if (flops.model_causal <= 0) return rates;
  rates.tflops = flops.model_causal / step.step_ns / 1e3;
  rates.tflops_noncausal = flops.model_non_causal / step.step_ns / 1e3;
  if (step.emulated || peak <= 0) return rates;
  rates.peak_tflops = peak;
  rates.mfu = *rates.tflops / peak;
  rates.mfu_noncausal = *rates.tflops_noncausal / peak;
  return rates;
}

std::string MfuText(const GpuRates& rates) {
  if (!rates.mfu) return {};
  return fmt::format("{:.1f}% of {:.0f}", 100 * *rates.mfu, *rates.peak_tflops);
}

const predict::DeviceFigure* PriceOf(const predict::Device& device) {
  for (const char* price : {"price.on_demand", "price.capacity_block"}) {
    if (const auto found = device.figures.find(price); found != device.figures.end()) return &found->second;
  }
  return nullptr;
}

double DollarsABillionTokens(const RunSpec& spec, const predict::StepForecast& step, const predict::Device& device) {
  const predict::DeviceFigure* price = PriceOf(device);
  const auto machines = static_cast<double>(device.machines(spec.ranks));
  return (price == nullptr ? 0 : price->value) * machines / 3600 * 1e9 / step.steady_tokens_per_s(spec);
}

RunCost CostOfRuns(const RunSpec& spec, double step_ns, double cold_ns, const predict::Device& device) {
  RunCost cost;
  const auto steps = static_cast<double>(spec.warmup_steps + spec.steps);
  const auto ranks = static_cast<double>(spec.ranks);
  const predict::DeviceFigure* price = PriceOf(device);
  cost.seconds = static_cast<double>(spec.repeats) * (cold_ns + steps * step_ns) / 1e9;
  cost.machine_hours = cost.seconds / 3600 * static_cast<double>(device.machines(spec.ranks));
  cost.kilowatt_hours = cost.seconds / 3600 * ranks * device.Or("chip.power", 0) / 1000;
  cost.dollars = price == nullptr ? 0 : cost.machine_hours * price->value;
  return cost;
}

std::vector<PointForecast> ForecastPoints(const sweep::Sweep& sweep, const std::vector<Point>& points,
                                          const predict::Device& device, const predict::Frameworks& frameworks,
                                          const OnPoint& on_point) {
  // Computes each step once, with as many threads as there are cores: each step is traced and planned independently.
  struct Step {
    const Point* point = nullptr;
    const predict::Framework* framework = nullptr;
    PointForecast forecast = {};
    std::exception_ptr wrong = {};
  };
  std::deque<Step> steps;
  std::unordered_map<std::string, const Step*> known;
  std::vector<std::variant<const Step*, std::string>> of_points;  // or why there is none
  for (const Point& point : points) {
    const predict::Framework* framework = FrameworkOf(sweep, point, frameworks);
    std::string why = framework == nullptr ? "no framework file describes this trainer's steps (frameworks/)"
                                           : predict::NotEstimated(*framework, point.spec);
    if (!why.empty()) {
      of_points.emplace_back(std::move(why));
      continue;
    }
    const auto [it, is_new] = known.try_emplace(framework->name + " " + EncodeSpec(MemoryRelevant(point.spec)));
    if (is_new) it->second = &steps.emplace_back(Step{.point = &point, .framework = framework});
    of_points.emplace_back(it->second);
  }
  std::atomic<size_t> next = 0;
  const auto work = [&](const OnPoint& on_step) {
    for (size_t at = next++; at < steps.size(); at = next++) {
      if (on_step) on_step(at * points.size() / steps.size(), points.size());
      Step& step = steps[at];
      try {
        step.forecast = ForecastOf(*step.point, device, *step.framework);
      } catch (...) {
        step.wrong = std::current_exception();
      }
    }
  };
  {
    std::vector<std::jthread> helpers;
    const size_t cores = std::max<size_t>(1, std::thread::hardware_concurrency());
    try {
      for (size_t i = 1; i < std::min(cores, steps.size()); ++i) helpers.emplace_back(work, OnPoint());
    } catch (const std::system_error&) {
      // No further thread starts. Those that did, and this one, do all of it.
    }
    work(on_point);
  }
  std::vector<PointForecast> forecasts;
  forecasts.reserve(points.size());
  for (const auto& of_point : of_points) {
    if (const auto* why = std::get_if<std::string>(&of_point)) {
      forecasts.push_back({.verdict = Verdict::kNotPredicted, .step = {}, .why_not = *why});
      continue;
    }
    const Step& step = *std::get<const Step*>(of_point);
    if (step.wrong) std::rethrow_exception(step.wrong);
    forecasts.push_back(step.forecast);
  }
  return forecasts;
}

Forecaster ForecasterOn(const predict::Device& device, const predict::Framework& framework) {
  return [&](const RunSpec& spec) { return MemoryOn(spec, device, framework); };
}

Table ForecastTable(const sweep::Sweep& sweep, const std::vector<Point>& points,
                    const std::vector<PointForecast>& forecasts, const predict::Device& device, Audience audience) {
  const auto fields = sweep::VaryingFields(sweep);
  const bool people = audience == Audience::kPeople;
  const auto columns_of = people ? ColumnsForPeople : ColumnsForPrograms;
  // Programs find it in `basis`.
  const bool estimates =
      people && std::ranges::any_of(forecasts, [](const PointForecast& f) { return !f.basis.empty(); });
  Table table = PointColumns(fields);
  for (const Column& column : columns_of({}, {}, device)) table.columns.push_back(column.first);
  if (estimates) table.columns.emplace_back("basis");
  for (size_t i = 0; i < points.size(); ++i) {
    auto row = PointCells(points[i].id, points[i].spec, fields, audience);
    const bool predicted = forecasts[i].verdict != Verdict::kNotPredicted;
    for (auto& [name, cell] : columns_of(points[i].spec, forecasts[i], device)) {
      row.push_back(predicted || name == "verdict" ? std::move(cell) : Cell());
    }
    if (estimates) row.emplace_back(forecasts[i].basis);
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::vector<Predictions> PredictionsOf(const std::vector<Point>& points, const std::vector<PointForecast>& forecasts,
                                       const predict::Device& device, int64_t unix_ns) {
  std::map<std::string, Predictions> by_framework;
  for (size_t i = 0; i < points.size(); ++i) {
    if (forecasts[i].verdict == Verdict::kNotPredicted) continue;
    Predictions& predictions = by_framework[forecasts[i].as];
    predictions.predicted_as = {kPredictedCampaign, SetupOn(device, forecasts[i].as)};
    Point point = OnDevice(device, points[i]);
    predictions.results.push_back(ResultOf(point, forecasts[i], device, unix_ns));
    predictions.points.push_back(std::move(point));
  }
  std::vector<Predictions> all;
  for (auto& [name, predictions] : by_framework) all.push_back(std::move(predictions));
  return all;
}

Predictions PublishedOf(const sweep::Sweep& sweep, const std::vector<Point>& points, const predict::Device& device,
                        const std::string& framework, int64_t unix_ns) {
  Predictions published;
  // The setup keeps them beside predictions of the same points, which they must not replace.
  Json setup = ParseJson(SetupOn(device, framework), "a setup");
  setup["published"] = true;
  published.predicted_as = {kPublishedCampaign, DumpJson(setup)};
  for (const Point& of_sweep : points) {
    const auto figures =
        std::find_if(sweep.published.begin(), sweep.published.end(), [&](const sweep::Published& each) {
          return std::all_of(each.when.begin(), each.when.end(), [&](const sweep::Condition& condition) {
            return condition.Holds(sweep.trainers.ValuesOf(of_sweep.spec));
          });
        });
    if (figures == sweep.published.end()) continue;
    Point point = OnDevice(device, of_sweep);
    RunResult result = ResultOfNoRun(point, Provenance::kPublished, device, unix_ns);
    result.throughput = {figures->steady_tokens_per_s, figures->cold_tokens_per_s};
    result.memory.device_peak_bytes = figures->peak_bytes;
    result.evidence = {{"source", figures->source}};
    published.results.push_back(std::move(result));
    published.points.push_back(std::move(point));
  }
  return published;
}

Table ForecastOps(const predict::StepForecast& step, Audience audience) {
  const bool for_people = audience == Audience::kPeople;
  Table table{{"op", "phase", "calls", for_people ? "predicted" : "ns", "share", "bound"}, {}};
  for (const predict::ForecastLine& line : step.lines) {
    if (line.ns == 0) continue;
    const bool waits = line.op == "land" || line.op == predict::kStragglers || line.op.ends_with("_over_ranks");
    const std::string bound = waits ? "communication" : line.compute_ns > 0.5 * line.ns ? "compute" : "memory";
    const double share = line.ns / step.step_ns;
    table.rows.push_back({std::string(line.op), std::string(line.phase), line.calls,
                          for_people ? Cell(FormatDuration(std::llround(line.ns))) : Cell(std::round(line.ns)),
                          for_people ? Cell(fmt::format("{:.1f}%", 100 * share)) : Cell(share), bound});
  }
  return table;
}

std::string ForecastSummary(const std::vector<Point>& points, const std::vector<PointForecast>& forecasts,
                            const predict::Device& device) {
  int64_t predicted = 0;
  int64_t ours = 0;
  std::set<std::string> bases, reasons;
  int64_t calibrated = 0;
  int64_t emulated = 0;
  int64_t unsure = 0;
  int64_t large = 0;
  size_t first_large = 0;
  RunCost all;
  for (size_t i = 0; i < points.size(); ++i) {
    const PointForecast& forecast = forecasts[i];
    if (forecast.verdict == Verdict::kNotPredicted) {
      if (!forecast.why_not.empty()) reasons.insert(PrintableLine(forecast.why_not));
      continue;
    }
    ++predicted;
    if (!forecast.basis.empty()) bases.insert(PrintableLine(forecast.basis));
    if (forecast.basis.empty()) ++ours;
    if (forecast.step.calibrated) ++calibrated;
    if (forecast.step.emulated) ++emulated;
    if (!forecast.step.spread) ++unsure;
    if (forecast.verdict == Verdict::kOutOfMemory) {
      if (++large == 1) first_large = i;
      continue;
    }
    const RunCost run = CostOfRuns(points[i].spec, forecast.step.step_ns, forecast.step.cold_ns(), device);
    all.seconds += run.seconds;
    all.machine_hours += run.machine_hours;
    all.kilowatt_hours += run.kilowatt_hours;
    all.dollars += run.dollars;
  }
  std::string text = fmt::format("{} of {} points predicted on {} ({})", predicted, std::ssize(points), device.name,
                                 PrintableLine(device.about));
  if (large > 0) {
    const SlabLimit limit = SlabLimitOn(points[first_large].spec, device);
    text += fmt::format(", {} out of memory ({}: {})", large, FormatBytes(limit.bytes), limit.basis);
  }
  if (emulated > 0) {
    text += fmt::format("; {} emulated: {} has no products of their format, so their speed is not that format's",
                        emulated, device.name);
  }
  if (ours > 0 && predicted > 0) {
    text += ours == predicted ? "; steps are of Ridgeline's own trainer"
                              : fmt::format("; {} are of Ridgeline's own trainer", ours);
  }
  if (predicted > 0 && !device.is_cpu()) {
    text +=
        "; steady and cold tokens/s are of all ranks; MFU is of the peak in TFLOP/s, causal attention counted as half";
  }
  if (predicted > large) {
    text += fmt::format("; to run those that fit takes {} one after another, {:.2f} machine-hours",
                        TimeText(1e9 * all.seconds), all.machine_hours);
    if (all.kilowatt_hours > 0) text += fmt::format(", at most {:.1f} kWh", all.kilowatt_hours);
    if (all.dollars > 0) text += fmt::format(", {:.2f} USD", all.dollars);
  }
  if (calibrated < ours && !device.measured.empty()) {
    text += fmt::format("; {} of them reach beyond what was measured of it: extrapolated (docs/prediction.md)",
                        ours - calibrated);
  } else if (calibrated < ours) {
    text += fmt::format("; extrapolated: the efficiency of steps on this device is {} (docs/prediction.md)",
                        SharesFrom(device));
  }
  if (unsure > 0) text += fmt::format("; the interval of {} is unknown: {}", unsure, predict::kNoInterval);
  for (const std::string& basis : bases) text += "; " + basis;
  for (const std::string& reason : reasons) text += "; not predicted: " + reason;
  return text;
}

}  // namespace ridgeline::plan
