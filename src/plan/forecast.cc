#include "plan/forecast.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "run/spec.h"
#include "sweep/launch.h"

namespace ridgeline {
namespace {

PointForecast ForecastOf(const Point& point, const Device& device, const Framework& framework) {
  try {
    const StepCosts costs = CostsOf(point.spec, device);
    const int64_t peak_bytes = framework.peak_bytes == nullptr ? costs.slab_bytes : framework.peak_bytes(point.spec);
    const bool fits = static_cast<double>(peak_bytes) <= device.At("memory.size");
    return {fits ? Verdict::kFits : Verdict::kOutOfMemory, peak_bytes, Forecast(costs, device, {}, framework)};
  } catch (const Error& e) {
    throw Error(e.kind(), fmt::format("point {}: {}", point.id, e.message()), e.hint());
  }
}

// What an hour of a machine costs: on demand, else reserved.
std::optional<double> PriceOf(const Device& device) {
  for (const char* price : {"price.on_demand", "price.capacity_block"}) {
    if (device.Has(price)) return device.At(price);
  }
  return std::nullopt;
}

double DollarsABillionTokens(const RunSpec& spec, const StepForecast& step, const Device& device, double price) {
  const double machines = std::ceil(static_cast<double>(spec.ranks) / static_cast<double>(device.gpus()));
  return price * machines / 3600 * 1e9 / step.steady_tokens_per_s(spec);
}

}  // namespace

std::vector<PointForecast> ForecastPoints(const Sweep& sweep, const std::vector<Point>& points, const Device& device,
                                          const Framework& framework) {
  std::unordered_map<std::string, PointForecast> known;
  std::vector<PointForecast> forecasts;
  for (const Point& point : points) {
    if (!IsOurTrainer(LaunchOf(sweep, point))) {
      forecasts.push_back({Verdict::kNotPredicted, 0, {}});
      continue;
    }
    const auto [it, is_new] = known.try_emplace(EncodeSpec(MemoryRelevant(point.spec)));
    if (is_new) it->second = ForecastOf(point, device, framework);
    forecasts.push_back(it->second);
  }
  return forecasts;
}

Table ForecastTable(const Sweep& sweep, const std::vector<Point>& points, const std::vector<PointForecast>& forecasts,
                    const Device& device, Audience audience) {
  const auto fields = VaryingFields(sweep);
  const std::optional<double> price = PriceOf(device);
  const bool for_people = audience == Audience::kPeople;
  Table table = PointColumns(fields);
  const std::vector<std::string> columns =
      for_people ? std::vector<std::string>{"memory",          "verdict",       "predicted_step", "90%_interval",
                                            "steady_tokens/s", "cold_tokens/s", "compute",        "memory_bound",
                                            "exposed",         "launches",      "bound",          "first"}
                 : std::vector<std::string>{
                       "peak_bytes",          "verdict",           "step_ns",    "step_low_ns", "step_high_ns",
                       "steady_tokens_per_s", "cold_tokens_per_s", "compute_ns", "memory_ns",   "exposed_ns",
                       "launch_ns",           "communication_ns",  "bound",      "first_ns",    "basis"};
  table.columns.insert(table.columns.end(), columns.begin(), columns.end());
  if (price) table.columns.emplace_back(for_people ? "USD/1B tokens" : "usd_per_billion_tokens");
  for (size_t i = 0; i < points.size(); ++i) {
    const RunSpec& spec = points[i].spec;
    const auto& [verdict, peak_bytes, step] = forecasts[i];
    auto row = PointCells(points[i].id, spec, fields, audience);
    if (verdict == Verdict::kNotPredicted) {
      row.emplace_back();
      row.emplace_back(std::string(VerdictName(verdict)));
      row.resize(table.columns.size());
      table.rows.push_back(std::move(row));
      continue;
    }
    const auto time = [](double ns) { return FormatDuration(std::llround(ns)); };
    const auto share = [&](double ns) { return fmt::format("{:.0f}%", 100 * ns / step.step_ns); };
    if (for_people) {
      row.insert(row.end(), {FormatBytes(peak_bytes), std::string(VerdictName(verdict)), time(step.step_ns),
                             fmt::format("{} … {}", time(step.low_ns), time(step.high_ns)),
                             FormatCount(step.steady_tokens_per_s(spec)), FormatCount(step.cold_tokens_per_s(spec)),
                             share(step.compute_ns), share(step.memory_ns), share(step.exposed_ns),
                             share(step.launch_ns), std::string(step.bound), "+" + time(step.first_ns)});
    } else {
      row.insert(row.end(), {peak_bytes, std::string(VerdictName(verdict)), std::round(step.step_ns),
                             std::round(step.low_ns), std::round(step.high_ns), step.steady_tokens_per_s(spec),
                             step.cold_tokens_per_s(spec), std::round(step.compute_ns), std::round(step.memory_ns),
                             std::round(step.exposed_ns), std::round(step.launch_ns), std::round(step.communication_ns),
                             std::string(step.bound), std::round(step.first_ns),
                             std::string(step.calibrated ? "predicted, calibrated" : "predicted, extrapolated")});
    }
    if (price) {
      const double dollars = DollarsABillionTokens(spec, step, device, *price);
      row.emplace_back(for_people ? Cell(fmt::format("{:.2f}", dollars)) : Cell(dollars));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table ForecastOps(const StepForecast& step, Audience audience) {
  const bool for_people = audience == Audience::kPeople;
  Table table{{"op", "phase", "calls", for_people ? "predicted" : "ns", "share", "bound"}, {}};
  for (const ForecastLine& line : step.lines) {
    if (line.ns == 0) continue;
    const bool waits = line.op == "land" || line.op.ends_with("_over_ranks");
    const std::string bound = waits ? "communication" : line.compute_ns > 0.5 * line.ns ? "compute" : "memory";
    const double share = line.ns / step.step_ns;
    table.rows.push_back({std::string(line.op), std::string(line.phase), line.calls,
                          for_people ? Cell(FormatDuration(std::llround(line.ns))) : Cell(std::round(line.ns)),
                          for_people ? Cell(fmt::format("{:.1f}%", 100 * share)) : Cell(share), bound});
  }
  return table;
}

std::string ForecastSummary(const std::vector<PointForecast>& forecasts, const Device& device,
                            const Framework& framework) {
  const auto calibrated = std::ranges::count_if(forecasts, [](const PointForecast& f) { return f.step.calibrated; });
  const auto predicted =
      std::ranges::count_if(forecasts, [](const PointForecast& f) { return f.verdict != Verdict::kNotPredicted; });
  const auto large =
      std::ranges::count_if(forecasts, [](const PointForecast& f) { return f.verdict == Verdict::kOutOfMemory; });
  std::string text = fmt::format("{} of {} points predicted on {} ({})", predicted, std::ssize(forecasts), device.name,
                                 PrintableLine(device.about));
  if (framework.peak_bytes != nullptr) text += fmt::format(" as {} ({})", framework.name, framework.about);
  if (large > 0) text += fmt::format(", {} out of its {}", large, FormatBytes(std::llround(device.At("memory.size"))));
  if (calibrated < predicted) {
    text +=
        "; extrapolated: what steps get of the device is taken from published figures of other programs, and no "
        "GPU has run these (docs/prediction.md)";
  }
  return text;
}

}  // namespace ridgeline
