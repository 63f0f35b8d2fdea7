// Makes a panel's forest plots, heat maps and scatter plots from its rows.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "report/intervals.h"
#include "report/page.h"

namespace ridgeline::report {
namespace {

std::string Title(const ReportChart& chart, const Rows& rows, std::span<const size_t> panel) {
  return chart.title + ": " + rows.Text(panel.front(), report_columns::kPanel);
}

// Formatted as in tables, with its interval if it has one.
std::string FigureText(const Report& report, const Rows& rows, size_t row, const std::string& column) {
  const ReportColumn* found = FindColumn(report, column);
  return found == nullptr ? rows.Text(row, column) : FormatFigure(*found, rows, row);
}

void Say(const std::string& sentence, std::string& description) {
  description += (description.empty() ? "" : " ") + sentence + ".";
}

std::string LabelOf(const Report& report, const std::string& column) {
  const ReportColumn* found = FindColumn(report, column);
  return found == nullptr ? column : found->label;
}

// The values of a column of numbers, smallest first.
std::vector<double> ValuesOf(const Rows& rows, std::span<const size_t> panel, const std::string& column) {
  std::set<double> values;
  for (const size_t row : panel) {
    if (const std::optional<double> value = rows.Number(row, column); value && std::isfinite(*value)) {
      values.insert(*value);
    }
  }
  return {values.begin(), values.end()};
}

// With its group and its unit: "Peak memory: planned".
std::string AxisName(const Report& report, const std::string& column) {
  const ReportColumn* found = FindColumn(report, column);
  if (found == nullptr) return column;
  const std::string name = found->group.empty() ? found->label : found->group + ": " + found->label;
  return found->unit.empty() ? name : name + ", " + found->unit;
}

ScatterFigure FigureOf(const Rows& rows, size_t row, const std::string& column, double value) {
  return {value, rows.Number(row, LowColumn(column)).value_or(value),
          rows.Number(row, HighColumn(column)).value_or(value)};
}

size_t PlaceOf(const std::vector<double>& values, double value) {
  return static_cast<size_t>(std::lower_bound(values.begin(), values.end(), value) - values.begin());
}

}  // namespace

ForestChart MakeForestChart(const Report& report, const ReportChart& chart, const Rows& rows,
                            std::span<const size_t> panel, const std::string& id) {
  ForestChart out;
  out.id = id;
  out.title = Title(chart, rows, panel);
  out.axis = chart.axis;
  out.scale = ScaleOf(chart.style);
  out.at = chart.as<ChartIntervals>().at;
  const std::string& column = chart.as<ChartIntervals>().value;
  bool any = false;
  for (const size_t row : panel) {
    if (out.rows.size() == kMaxBars) break;
    ForestRow one;
    one.label = rows.Text(row, chart.label);
    if (const std::string note = NoteOf(rows, row); !note.empty()) one.label += ", " + note;
    const std::optional<double> value = rows.Number(row, column);
    // If a failed run has a figure, it is a comparison, and the comparison failed.
    one.bad = rows.Failed(row);
    if (!value) one.failure = rows.Text(row, report_columns::kFailure);
    if (one.failure.empty() && (!value || !std::isfinite(*value))) continue;  // it is the reference of the comparison
    if (one.failure.empty()) {
      any = true;
      one.value = *value;
      one.text = FigureText(report, rows, row, column);
      one.low = rows.Number(row, LowColumn(column)).value_or(one.value);
      one.high = rows.Number(row, HighColumn(column)).value_or(one.value);
    }
    one.title = one.label + ": " + (one.failure.empty() ? one.text : one.failure);
    Say(one.title, out.description);
    out.rows.push_back(std::move(one));
  }
  if (!any) out.rows.clear();
  return out;
}

HeatMap MakeHeatMap(const Report& report, const ReportChart& chart, const Rows& rows, std::span<const size_t> panel,
                    const std::string& id) {
  const ChartCells& from = chart.as<ChartCells>();
  HeatMap out;
  out.id = id;
  out.title = Title(chart, rows, panel);
  out.x_axis = LabelOf(report, from.x);
  out.y_axis = LabelOf(report, from.y);
  const std::vector<double> xs = ValuesOf(rows, panel, from.x);
  const std::vector<double> ys = ValuesOf(rows, panel, from.y);
  std::map<std::pair<size_t, size_t>, size_t> places;  // (row, column) with rows from the top -> the run there
  double most = 0;
  for (const size_t row : panel) {
    const std::optional<double> x = rows.Number(row, from.x);
    const std::optional<double> y = rows.Number(row, from.y);
    if (!x || !y || !std::isfinite(*x) || !std::isfinite(*y)) continue;
    if (!rows.Failed(row)) most = std::max(most, rows.Number(row, from.value).value_or(0));
    const std::pair place(ys.size() - 1 - PlaceOf(ys, *y), PlaceOf(xs, *x));
    const auto [held, is_new] = places.emplace(place, row);
    if (!is_new && rows.Failed(held->second) && !rows.Failed(row)) held->second = row;
  }
  for (const double x : xs) out.columns.push_back(ShortNumber(x));
  for (const double y : ys) out.rows.push_back(ShortNumber(y));
  std::reverse(out.rows.begin(), out.rows.end());
  for (const auto& [place, row] : places) {
    HeatCell cell;
    cell.row = place.first;
    cell.column = place.second;
    cell.failure = rows.Text(row, report_columns::kFailure);
    const std::optional<double> value = rows.Number(row, from.value);
    if (cell.failure.empty() && !value) continue;
    if (cell.failure.empty()) {
      cell.share = most > 0 ? *value / most : 0;
      cell.text = FormatValue(chart.style, rows.At(row, from.value));
      cell.hollow = rows.Text(row, report_columns::kProvenance) != "measured";
    }
    const std::string note = NoteOf(rows, row);
    cell.title = fmt::format("{}: {}{}", rows.Text(row, chart.label), cell.failure.empty() ? cell.text : cell.failure,
                             note.empty() ? "" : " (" + note + ")");
    Say(cell.title, out.description);
    out.cells.push_back(std::move(cell));
  }
  return out;
}

ScatterChart MakeScatterChart(const Report& report, const ReportChart& chart, const Rows& rows,
                              std::span<const size_t> panel, const std::string& id) {
  const ChartScatter& from = chart.as<ChartScatter>();
  ScatterChart out;
  out.id = id;
  out.title = Title(chart, rows, panel);
  const ReportColumn* x_column = FindColumn(report, from.x);
  out.x = {AxisName(report, from.x), x_column == nullptr ? AxisScale::kPlain : ScaleOf(x_column->style), from.log_x};
  out.y = {chart.axis, ScaleOf(chart.style), from.log};
  const auto figure = [&](size_t row, const std::string& column, bool log) {
    const std::optional<double> value = rows.Number(row, column);
    return value && log && *value <= 0 ? std::nullopt : value;
  };
  const auto is_on_line = [&](size_t row) {
    return !from.through.empty() && rows.Number(row, from.through).value_or(0) != 0;
  };
  std::vector<size_t> order(panel.begin(), panel.end());
  std::stable_partition(order.begin(), order.end(), is_on_line);
  std::vector<std::string> texts;  // texts of `by`, in the panel's order
  for (const size_t row : panel) {
    const std::string text = rows.Text(row, from.by);
    if (std::find(texts.begin(), texts.end(), text) == texts.end()) texts.push_back(text);
  }
  const auto group_of = [&](size_t row, bool failed) -> ScatterGroup& {
    const std::string text = rows.Text(row, from.by);
    std::string mark = rows.Text(row, report_columns::kProvenance);
    if (mark == "measured" || failed) mark.clear();
    if (rows.Emulated(row) && !failed) mark += mark.empty() ? "emulated" : ", emulated";
    const std::string legend = failed ? text + ", failed" : mark.empty() ? text : text + ", " + mark;
    auto group = std::find_if(out.groups.begin(), out.groups.end(),
                              [&](const ScatterGroup& other) { return other.legend == legend; });
    if (group == out.groups.end()) {
      const auto colour = std::find(texts.begin(), texts.end(), text) - texts.begin();
      group = out.groups.insert(group, {legend, static_cast<size_t>(colour), !mark.empty(), {}});
    }
    return *group;
  };
  size_t drawn = 0;
  bool any = false;
  for (const size_t row : order) {
    const bool failed = rows.Failed(row);
    const std::optional<double> x = figure(row, from.x, from.log_x);
    const std::optional<double> y = failed ? std::nullopt : figure(row, from.y, from.log);
    if (!x || (!y && !failed) || drawn == kMaxMarks) continue;
    ++drawn;
    any = any || !failed;
    ScatterPoint point;
    point.label = rows.Text(row, chart.label);
    const std::string differs = rows.Text(row, report_columns::kDiffers);
    if (!differs.empty()) point.label += ", " + differs;
    const std::string note = NoteOf(rows, row);
    const std::string x_text = FigureText(report, rows, row, from.x);
    point.failure = rows.Text(row, report_columns::kFailure);
    point.title = fmt::format("{}{}: {} at {}", rows.Text(row, chart.label), note.empty() ? "" : " (" + note + ")",
                              failed ? point.failure : FigureText(report, rows, row, from.y), x_text);
    point.x = FigureOf(rows, row, from.x, *x);
    if (y) point.y = FigureOf(rows, row, from.y, *y);
    point.on_line = is_on_line(row) && !failed;
    if (drawn <= kMaxBars) Say(point.title, out.description);
    group_of(row, failed).points.push_back(std::move(point));
  }
  if (!any) out.groups.clear();
  return out;
}

}  // namespace ridgeline::report
