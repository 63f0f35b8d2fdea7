#include "trainers/rates.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "base/text.h"
#include "run/step_figures.h"
#include "stats/median.h"

namespace ridgeline::trainers {

bool IsMeanRate(const FoundMetric& found) {
  return found.metric->figure->name == "tokens_per_s" && found.metric->take == Take::kLast;
}

std::string MeanRateAgainstTimes(const FoundMetric& rate, double all_ranks, const FoundMetric& times,
                                 int64_t tokens_per_step) {
  double fastest_ns = 0;
  for (const double ns : times.all.empty() ? times.values : times.all) {
    if (ns > 0 && (fastest_ns == 0 || ns < fastest_ns)) fastest_ns = ns;
  }
  if (fastest_ns == 0) return {};
  const double most = static_cast<double>(tokens_per_step) * 1e9 / fastest_ns;
  if (all_ranks <= (1 + kRatesAgree + RoundedShare(rate) + RoundedShare(times)) * most) return {};
  return fmt::format("tokens_per_s is {}, but {} tokens in a step of {}, the fastest, are {}", FormatCount(all_ranks),
                     tokens_per_step, FormatDuration(static_cast<int64_t>(fastest_ns)), FormatCount(most));
}

double RoundedShare(const FoundMetric& found) {
  const LoggedUnit& unit = *found.metric->unit;
  const double kept = static_cast<double>(unit.factor) / static_cast<double>(unit.divisor);
  std::vector<double> printed;
  for (const double value : found.values) {
    if (value > 0) printed.push_back(unit.form == LoggedUnit::Form::kInverse ? kept / value : value / kept);
  }
  if (printed.empty()) return 0;
  const double half = HalfOfLastPlace(printed);
  return half / stats::MedianOf(printed);
}

std::string RateOfAllAgainstTimes(const std::vector<FoundMetric>& found, int64_t tokens_per_step) {
  const auto find = [&](std::string_view name, std::string_view unit) -> const FoundMetric* {
    const auto at = std::find_if(found.begin(), found.end(), [&](const FoundMetric& metric) {
      return metric.metric->figure->name == name && metric.unit == unit;
    });
    return at == found.end() ? nullptr : &*at;
  };
  const FoundMetric* times = find("step_time", "ns");
  const FoundMetric* rates = find("tokens_per_s", "tokens/s");
  if (times == nullptr || rates == nullptr) return {};
  if (IsMeanRate(*rates)) return MeanRateAgainstTimes(*rates, rates->values.back(), *times, tokens_per_step);
  std::vector<double> values = times->values;
  const double step_ns = stats::MedianOf(values);
  values = rates->values;
  const double rate = stats::MedianOf(values);
  if (step_ns <= 0) return {};
  const double follows = static_cast<double>(tokens_per_step) * 1e9 / step_ns;
  const double rounded = RoundedShare(*times) + RoundedShare(*rates);
  if (std::abs(rate - follows) <= (kRatesAgree + rounded) * follows) return {};
  return fmt::format("tokens_per_s is {}, but {} tokens in a step of {} are {}", FormatCount(rate), tokens_per_step,
                     FormatDuration(static_cast<int64_t>(step_ns)), FormatCount(follows));
}

}  // namespace ridgeline::trainers
