// A panel's rows -> the forest plots and heat maps a page shows of them.
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

namespace ridgeline {
namespace {

std::string Title(const ReportChart& chart, const Rows& rows, std::span<const size_t> panel) {
  return chart.title + ": " + rows.Text(panel.front(), report_columns::kPanel);
}

// As tables have it: with its interval, where it has one.
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

// The texts of a column of numbers, the smallest first.
std::vector<double> ValuesOf(const Rows& rows, std::span<const size_t> panel, const std::string& column) {
  std::set<double> values;
  for (const size_t row : panel) {
    if (const std::optional<double> value = rows.Number(row, column); value && std::isfinite(*value)) {
      values.insert(*value);
    }
  }
  return {values.begin(), values.end()};
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
  out.at = chart.intervals->at;
  const std::string& column = chart.intervals->value;
  bool any = false;
  for (const size_t row : panel) {
    if (out.rows.size() == kMaxBars) break;
    ForestRow one;
    one.label = rows.Text(row, chart.label);
    if (const std::string note = NoteOf(rows, row); !note.empty()) one.label += ", " + note;
    one.failure = rows.Text(row, report_columns::kFailure);
    const std::optional<double> value = rows.Number(row, column);
    if (one.failure.empty() && (!value || !std::isfinite(*value))) continue;  // it is what others are compared with
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
  const ChartCells& from = *chart.cells;
  HeatMap out;
  out.id = id;
  out.title = Title(chart, rows, panel);
  out.x_axis = LabelOf(report, from.x);
  out.y_axis = LabelOf(report, from.y);
  const std::vector<double> xs = ValuesOf(rows, panel, from.x);
  const std::vector<double> ys = ValuesOf(rows, panel, from.y);
  std::map<std::pair<size_t, size_t>, size_t> places;  // (row, column), the rows from the top -> whose it is
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

}  // namespace ridgeline
