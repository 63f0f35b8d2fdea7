#include "serve/series.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/json.h"
#include "report/lines.h"
#include "serve/markup.h"

namespace ridgeline {
namespace {

constexpr size_t kMostDrawn = 400;

// The mean of neighbours, and what they span, where a series is longer than can be seen.
std::vector<LinePoint> PointsOf(const std::vector<double>& values) {
  const size_t bucket = (values.size() + kMostDrawn - 1) / kMostDrawn;
  std::vector<LinePoint> points;
  for (size_t begin = 0; begin < values.size(); begin += bucket) {
    const size_t end = std::min(begin + bucket, values.size());
    double sum = 0;
    double low = values[begin];
    double high = low;
    for (size_t i = begin; i < end; ++i) {
      sum += values[i];
      low = std::min(low, values[i]);
      high = std::max(high, values[i]);
    }
    points.push_back({(static_cast<double>(begin + 1) + static_cast<double>(end)) / 2,
                      sum / static_cast<double>(end - begin), low, high});
  }
  return points;
}

std::vector<double> NumbersOf(const std::string& json, double divisor) {
  std::vector<double> values;
  const Json series = ParseJson(json.empty() ? "[]" : json, "a series in the store");
  for (const Json& value : series) {
    values.push_back(value.is_number() ? value.get<double>() / divisor : std::nan(""));
  }
  return values;
}

}  // namespace

std::string ChartOfSeries(const SeriesChart& from, const std::vector<std::pair<std::string, std::string>>& series) {
  LineChart chart;
  chart.id = from.id;
  chart.title = from.title;
  chart.x_axis = "step";
  chart.y_axis = from.axis;
  size_t longest = 0;
  for (const auto& [name, json] : series) {
    const std::vector<double> values = NumbersOf(json, from.divisor);
    if (std::count_if(values.begin(), values.end(), [](double v) { return std::isfinite(v); }) < 2) continue;
    longest = std::max(longest, values.size());
    Curve curve;
    curve.points = PointsOf(values);
    curve.colour = chart.lines.size();
    curve.title = name.empty() ? from.title : name;
    curve.legend = name;
    chart.lines.push_back(std::move(curve));
  }
  if (chart.lines.empty()) return {};
  chart.x_max = static_cast<double>(longest);
  chart.description = fmt::format("{} over {} steps.", from.title, longest);
  return "<div class=\"charts\">\n" +
         ChartHtml(chart, longest > kMostDrawn ? "Each point is the mean of neighbours, in the band that they span."
                                               : "Every step, warm-up included.") +
         "</div>\n";
}

}  // namespace ridgeline
