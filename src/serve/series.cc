#include "serve/series.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/json.h"
#include "report/lines.h"

namespace ridgeline::serve {
namespace {

constexpr size_t kMostDrawn = 400;

// The mean and range of neighbours, if a series is longer than a chart can show.
std::vector<report::LinePoint> PointsOf(const std::vector<double>& values) {
  const size_t bucket = (values.size() + kMostDrawn - 1) / kMostDrawn;
  std::vector<report::LinePoint> points;
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

std::vector<double> NumbersOf(const std::string& json) {
  std::vector<double> values;
  const Json series = ParseJson(json.empty() ? "[]" : json, "a series in the store");
  for (const Json& value : series) values.push_back(value.is_number() ? value.get<double>() : std::nan(""));
  return values;
}

void AddChart(const std::string& id, const std::string& title, const std::string& axis, const NamedSeries& series,
              std::vector<NotedChart>& charts) {
  report::LineChart chart;
  chart.id = id;
  chart.title = title;
  chart.x_axis = "step";
  chart.y_axis = axis;
  size_t longest = 0;
  double largest = 0;
  for (const auto& [name, json] : series) {
    const std::vector<double> values = NumbersOf(json);
    if (std::count_if(values.begin(), values.end(), [](double v) { return std::isfinite(v); }) < 2) continue;
    longest = std::max(longest, values.size());
    for (const double value : values) largest = std::isfinite(value) ? std::max(largest, value) : largest;
    report::Curve curve;
    curve.points = PointsOf(values);
    curve.colour = chart.lines.size();
    curve.title = name.empty() ? title : name;
    curve.legend = name;
    chart.lines.push_back(std::move(curve));
  }
  if (chart.lines.empty()) return;
  if (axis.empty()) {  // nanoseconds
    const double unit = largest >= 1e9 ? 1e9 : largest >= 1e6 ? 1e6 : 1e3;
    chart.y_axis = unit == 1e9 ? "seconds" : unit == 1e6 ? "milliseconds" : "microseconds";
    for (report::Curve& curve : chart.lines) {
      for (report::LinePoint& point : curve.points)
        point = {point.x, point.y / unit, point.low / unit, point.high / unit};
    }
  }
  chart.x_max = static_cast<double>(longest);
  chart.description = fmt::format("{} over {} steps.", title, longest);
  charts.push_back({std::move(chart), longest > kMostDrawn
                                          ? "Each point is the mean of neighbours, in the band that they span."
                                          : "Every step, warm-up included."});
}

}  // namespace

std::string StepCharts(const NamedSeries& step_ns, const NamedSeries& losses) {
  std::vector<NotedChart> charts;
  AddChart("steps", "Step times", "", step_ns, charts);
  AddChart("loss", "Loss", "loss", losses, charts);
  return ChartsHtml(charts);
}

}  // namespace ridgeline::serve
