#include "plan/price.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <unordered_map>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "plan/forecast.h"
#include "predict/step_model.h"
#include "run/spec.h"
#include "sweep/launch.h"

namespace ridgeline::plan {
namespace {

// Computes step times on a device. Specs that differ only in fields that do not change memory take the same time.
class StepTimesOn {
 public:
  explicit StepTimesOn(const predict::Device& device) : device_(device) {}

  // `framework`: that of another trainer; nullptr: our own.
  const predict::StepForecast& Of(const Point& point, const predict::Framework* framework) {
    const auto [it, is_new] = known_.try_emplace(EncodeSpec(MemoryRelevant(point.spec)));
    if (is_new) {
      try {
        const auto [priced, as] =
            predict::AsPriced(framework != nullptr ? *framework : predict::Framework{}, point.spec);
        it->second = predict::PredictStep(priced, device_, as);
      } catch (const Error& e) {
        throw Error(e.kind(), fmt::format("point {}: {}", point.id, e.message()), e.hint());
      }
    }
    return it->second;
  }

 private:
  const predict::Device& device_;
  std::unordered_map<std::string, predict::StepForecast> known_;
};

std::string IntervalOf(const std::optional<PointPrice::Interval>& interval) {
  const auto text = [](double seconds) { return FormatDuration(std::llround(1e9 * seconds)); };
  return interval ? text(interval->low_s) + " … " + text(interval->high_s) : "unknown";
}

std::string Short(double value) { return value >= 100 ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value); }

double HoursOf(const PointPrice& price, double seconds) { return seconds / 3600 * price.nodes; }
double KilowattHoursOf(const PointPrice& price, double seconds) { return seconds / 3600 * price.watts / 1000; }
double DollarsOf(const PointPrice& price, double seconds) { return seconds / 3600 * price.usd_per_hour; }

struct Total {
  double seconds = 0;
  // Nothing if a part of the sum has no interval.
  std::optional<PointPrice::Interval> interval = PointPrice::Interval{};
  double node_hours = 0;
  double kilowatt_hours = 0;
  double usd = 0, low_usd = 0, high_usd = 0;
};

// A sum has an interval only if each of its points has one.
void AddInterval(const PointPrice& price, Total& total) {
  if (!price.interval || !total.interval) {
    total.interval.reset();
    return;
  }
  total.interval->low_s += price.interval->low_s;
  total.interval->high_s += price.interval->high_s;
  total.low_usd += DollarsOf(price, price.interval->low_s);
  total.high_usd += DollarsOf(price, price.interval->high_s);
}

}  // namespace

void MeasuredTimes::Took(const RunSpec& spec, double seconds) {
  models_[{spec.device, spec.gpu, spec.trainer}].Took(predict::RelativeCost(spec), seconds);
}

const predict::TimeModel* MeasuredTimes::Of(const RunSpec& spec) const {
  const auto found = models_.find({spec.device, spec.gpu, spec.trainer});
  return found == models_.end() || !found->second.measured() ? nullptr : &found->second;
}

std::string_view BasisName(PointPrice::Basis basis) {
  switch (basis) {
    case PointPrice::Basis::kUnknown:
      return "";
    case PointPrice::Basis::kMeasurements:
      return "from measurements";
    case PointPrice::Basis::kCalibrated:
      return predict::ClockBasis(true);
    case PointPrice::Basis::kExtrapolated:
      return predict::ClockBasis(false);
    case PointPrice::Basis::kEstimated:
      return "predicted, as its framework estimates";
  }
  return "";
}

std::vector<PointPrice> PricePoints(const sweep::Sweep& sweep, const std::vector<Point>& points, const Plan& plan,
                                    const PriceParts& parts, const OnPoint& on_point) {
  using enum PointPrice::Basis;
  std::optional<StepTimesOn> steps;
  NodeMemory on;
  if (parts.device) {
    steps.emplace(*parts.device);
    on.device = std::make_shared<const predict::Device>(*parts.device);
  }
  std::vector<PointPrice> prices;
  for (const PlannedPoint& planned : plan.points) {
    const Point& point = points[planned.point];
    const RunSpec& spec = point.spec;
    const sweep::Launch launch = sweep::LaunchOf(sweep, point);
    PointPrice& price = prices.emplace_back();
    price.runs =
        (planned.verdict != Verdict::kOutOfMemory || !planned.estimated.empty()) && !parts.finished.contains(point.id);
    const predict::Device* device = parts.device ? &*parts.device : nullptr;
    price.nodes = NodesOf(spec, launch, device);
    price.usd_per_hour = DollarsAnHour(sweep, price.nodes, device);
    if (device != nullptr) price.watts = static_cast<double>(spec.ranks) * device->Or("chip.power", 0);
    if (sweep.price.node_watts > 0) price.watts = price.nodes * sweep.price.node_watts;
    const predict::TimeModel* times = parts.device && !RunsOn(spec, *parts.device) ? nullptr : parts.times.Of(spec);
    const auto limit_s = static_cast<double>(launch.time_limit_s);
    const auto within = [&](double seconds) { return limit_s > 0 ? std::min(seconds, limit_s) : seconds; };
    const auto repeats = static_cast<double>(spec.repeats);
    const bool is_known = predict::RelativeCost(spec) > 0;
    const predict::Framework* framework = EstimatedAs(spec, launch, on, parts.frameworks.get());
    if (times != nullptr && is_known) {
      const double each_s = times->Seconds(predict::RelativeCost(spec));
      price.basis = kMeasurements;
      price.seconds = repeats * within(each_s);
      price.interval = {repeats * within(each_s / times->Spread()), repeats * within(each_s * times->Spread())};
    } else if (steps && (IsOurTrainer(launch) || framework != nullptr)) {
      const predict::StepForecast& step = steps->Of(point, framework);
      const auto seconds = [&](double step_ns, double first_ns) {
        return repeats * within(CostOfRuns(spec, step_ns, first_ns, *parts.device).seconds / repeats);
      };
      // If the device has no figure for the first iteration, it is assumed: it may be zero, or twice as much.
      const double unsure = parts.device->Has("cold.first_iteration") ? 0 : 1;
      price.basis = framework != nullptr ? kEstimated : step.calibrated ? kCalibrated : kExtrapolated;
      price.seconds = seconds(step.step_ns, step.cold_ns());
      price.rates = RatesOn(spec, step, *parts.device);
      if (const auto interval = step.interval()) {
        price.interval = {seconds(interval->low_ns, (1 - unsure) * step.cold_ns()),
                          seconds(interval->high_ns, (1 + unsure) * step.cold_ns())};
      }
    }
    if (on_point) on_point(prices.size(), plan.points.size());
  }
  return prices;
}

void AddPrices(const std::vector<PointPrice>& prices, Audience audience, Table& table) {
  using Value = Cell (*)(const PointPrice&);
  struct Column {
    const char* name;
    bool (*known)(const PointPrice&);
    Value value;
  };
  static constexpr auto kTimed = [](const PointPrice& p) { return p.basis != PointPrice::Basis::kUnknown; };
  static constexpr auto kBounded = [](const PointPrice& p) { return kTimed(p) && p.interval; };
  static constexpr auto kPowered = [](const PointPrice& p) { return kTimed(p) && p.watts > 0; };
  static constexpr auto kPriced = [](const PointPrice& p) { return kTimed(p) && p.usd_per_hour > 0; };
  static constexpr auto kPricedBounds = [](const PointPrice& p) { return kPriced(p) && p.interval; };
  static constexpr auto kRated = [](const PointPrice& p) { return p.rates.tokens_per_s > 0; };
  static constexpr auto kOfPeak = [](const PointPrice& p) { return p.rates.mfu.has_value(); };
  static constexpr Column kForPeople[] = {
      {"tokens/s_a_GPU", kRated, [](const PointPrice& p) { return Cell(FormatCount(p.rates.tokens_per_s)); }},
      {"TFLOP/s_a_GPU", kOfPeak, [](const PointPrice& p) { return Cell(fmt::format("{:.0f}", *p.rates.tflops)); }},
      {"MFU", kOfPeak, [](const PointPrice& p) { return Cell(MfuText(p.rates)); }},
      {"takes", kTimed, [](const PointPrice& p) { return Cell(FormatDuration(std::llround(1e9 * p.seconds))); }},
      {"90%_interval", kTimed, [](const PointPrice& p) { return Cell(IntervalOf(p.interval)); }},
      {"node_hours", kTimed, [](const PointPrice& p) { return Cell(Short(HoursOf(p, p.seconds))); }},
      {"kWh", kPowered, [](const PointPrice& p) { return Cell(Short(KilowattHoursOf(p, p.seconds))); }},
      {"USD", kPriced, [](const PointPrice& p) { return Cell(fmt::format("{:.2f}", DollarsOf(p, p.seconds))); }},
      {"price", kTimed, [](const PointPrice& p) { return Cell(std::string(BasisName(p.basis))); }}};
  static constexpr Column kForPrograms[] = {
      {"tokens_per_s_per_gpu", kRated, [](const PointPrice& p) { return Cell(p.rates.tokens_per_s); }},
      {"tflops_per_gpu", kOfPeak, [](const PointPrice& p) { return Cell(*p.rates.tflops); }},
      {"mfu", kOfPeak, [](const PointPrice& p) { return Cell(*p.rates.mfu); }},
      {"tflops_per_gpu_noncausal", kOfPeak, [](const PointPrice& p) { return Cell(*p.rates.tflops_noncausal); }},
      {"mfu_noncausal", kOfPeak, [](const PointPrice& p) { return Cell(*p.rates.mfu_noncausal); }},
      {"peak_tflops_per_gpu", kOfPeak, [](const PointPrice& p) { return Cell(*p.rates.peak_tflops); }},
      {"run_s", kTimed, [](const PointPrice& p) { return Cell(p.seconds); }},
      {"run_low_s", kBounded, [](const PointPrice& p) { return Cell(p.interval->low_s); }},
      {"run_high_s", kBounded, [](const PointPrice& p) { return Cell(p.interval->high_s); }},
      {"nodes", kTimed, [](const PointPrice& p) { return Cell(static_cast<int64_t>(p.nodes)); }},
      {"node_hours", kTimed, [](const PointPrice& p) { return Cell(HoursOf(p, p.seconds)); }},
      {"kilowatt_hours", kPowered, [](const PointPrice& p) { return Cell(KilowattHoursOf(p, p.seconds)); }},
      {"usd", kPriced, [](const PointPrice& p) { return Cell(DollarsOf(p, p.seconds)); }},
      {"usd_low", kPricedBounds, [](const PointPrice& p) { return Cell(DollarsOf(p, p.interval->low_s)); }},
      {"usd_high", kPricedBounds, [](const PointPrice& p) { return Cell(DollarsOf(p, p.interval->high_s)); }},
      {"price_basis", kTimed, [](const PointPrice& p) { return Cell(std::string(BasisName(p.basis))); }},
      {"to_run", kTimed, [](const PointPrice& p) { return Cell(static_cast<int64_t>(p.runs)); }}};
  const std::span<const Column> columns =
      audience == Audience::kPeople ? std::span<const Column>(kForPeople) : std::span<const Column>(kForPrograms);
  for (const Column& column : columns) {
    if (std::none_of(prices.begin(), prices.end(), column.known)) continue;
    table.columns.emplace_back(column.name);
    for (size_t i = 0; i < prices.size(); ++i) {
      table.rows[i].push_back(column.known(prices[i]) ? column.value(prices[i]) : Cell());
    }
  }
}

std::string PriceSummary(const sweep::Sweep& sweep, const std::vector<PointPrice>& prices, const PriceParts& parts) {
  Total total;
  int64_t to_run = 0;
  int64_t priced = 0;
  std::set<std::string_view> bases;
  for (const PointPrice& price : prices) {
    if (!price.runs) continue;
    ++to_run;
    if (price.basis == PointPrice::Basis::kUnknown) continue;
    ++priced;
    bases.insert(BasisName(price.basis));
    total.seconds += price.seconds;
    AddInterval(price, total);
    total.node_hours += HoursOf(price, price.seconds);
    total.kilowatt_hours += KilowattHoursOf(price, price.seconds);
    total.usd += DollarsOf(price, price.seconds);
  }
  if (priced == 0) return {};
  std::string text = fmt::format(
      "to run {}{} takes {} ({}) one after another, {} node-hours",
      priced < to_run ? fmt::format("{} of ", priced) : "", to_run == 1 ? "1 point" : fmt::format("{} points", to_run),
      FormatDuration(std::llround(1e9 * total.seconds)),
      total.interval ? IntervalOf(total.interval) : "interval unknown", Short(total.node_hours));
  if (total.kilowatt_hours > 0) text += fmt::format(", at most {} kWh", Short(total.kilowatt_hours));
  if (total.usd > 0) {
    text += fmt::format(", {:.2f} USD", total.usd);
    if (total.interval) text += fmt::format(" ({:.2f} … {:.2f})", total.low_usd, total.high_usd);
    if (sweep.price.node_usd_per_hour > 0) {
      text += fmt::format(" at {:.2f} USD an hour and node ({}, as the sweep says)", sweep.price.node_usd_per_hour,
                          sweep.price.date);
    } else if (const predict::DeviceFigure* price = parts.device ? PriceOf(*parts.device) : nullptr) {
      text += fmt::format(" at {:.2f} USD an hour and node ({}, {})", price->value, parts.device->name,
                          PrintableLine(price->date));
    }
  }
  text += "; " + Join(std::vector<std::string>(bases.begin(), bases.end()), " and ");
  if (!total.interval) text += fmt::format("; {}", predict::kNoInterval);
  return text;
}

predict::Device PricedDevice(const sweep::Sweep& sweep, const std::vector<std::filesystem::path>& folders) {
  try {
    return predict::FindDevice(sweep.price.device, folders);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kUsage) throw;
    throw Error(ErrorKind::kInvalidInput,
                yaml::FaultText(sweep.file, {sweep.price.device_place, "price: " + e.message()}), e.hint());
  }
}

double NodesOf(const RunSpec& spec, const sweep::Launch& launch, const predict::Device* device) {
  if (device == nullptr || device->is_cpu()) return static_cast<double>(std::max<int64_t>(launch.nodes, 1));
  // A GPU without a machine around it: as many as its fast link joins make a node.
  const auto of_a_node = static_cast<int64_t>(device->Or("machine.gpus", static_cast<double>(device->domain())));
  return static_cast<double>(std::max(launch.nodes, (spec.ranks + of_a_node - 1) / of_a_node));
}

bool RunsOn(const RunSpec& spec, const predict::Device& device) {
  return spec.device == "cuda" && spec.gpu == device.gpu;
}

double DollarsAnHour(const sweep::Sweep& sweep, double nodes, const predict::Device* device) {
  if (sweep.price.node_usd_per_hour > 0) return nodes * sweep.price.node_usd_per_hour;
  const predict::DeviceFigure* price = device == nullptr ? nullptr : PriceOf(*device);
  return price == nullptr ? 0 : nodes * price->value;
}

predict::TimeModel AssumedTimes(const sweep::Sweep& sweep, const std::vector<Point>& points,
                                const predict::Device& device, const predict::Frameworks* frameworks,
                                const OnPoint& on_point) {
  predict::TimeModel times;
  StepTimesOn steps(device);
  const NodeMemory on = {.device = std::make_shared<const predict::Device>(device)};
  size_t done = 0;
  for (const Point& point : points) {
    if (on_point) on_point(done++, points.size());
    const sweep::Launch launch = sweep::LaunchOf(sweep, point);
    const predict::Framework* framework = EstimatedAs(point.spec, launch, on, frameworks);
    if (!IsOurTrainer(launch) && framework == nullptr) continue;
    const predict::StepForecast& step = steps.Of(point, framework);
    const double repeats = static_cast<double>(point.spec.repeats);
    times.Assume(predict::RelativeCost(point.spec),
                 CostOfRuns(point.spec, step.step_ns, step.cold_ns(), device).seconds / repeats);
  }
  return times;
}

}  // namespace ridgeline::plan
