#include "report/intervals.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "report/steps.h"
#include "stats/median.h"

namespace ridgeline::report {
namespace {

// The query's values for a run, by column.
struct Source {
  size_t result, all_steps, warmup, steps, repeats;
};

size_t ColumnIndex(const Report& report, const Table& table, const std::string& name) {
  const auto it = std::find(table.columns.begin(), table.columns.end(), name);
  if (it != table.columns.end()) return static_cast<size_t>(it - table.columns.begin());
  throw Error(ErrorKind::kInvalidInput,
              fmt::format("the report '{}' has intervals, for which its query.sql lacks the column '{}'{}", report.name,
                          name, DidYouMean(name, table.columns)),
              "docs/reports.md lists the columns that intervals need");
}

std::optional<double> Number(const Cell& cell) {
  if (const auto* integer = std::get_if<int64_t>(&cell)) return static_cast<double>(*integer);
  const auto* number = std::get_if<double>(&cell);
  return number == nullptr || !std::isfinite(*number) ? std::nullopt : std::optional(*number);
}

class Intervals {
 public:
  Intervals(const Report& report, const Table& table)
      : table_(table),
        source_{ColumnIndex(report, table, "result"), ColumnIndex(report, table, "all_steps_ns"),
                ColumnIndex(report, table, "warmup_steps"), ColumnIndex(report, table, "steps"),
                ColumnIndex(report, table, "repeats")} {
    for (size_t row = 0; row < table.rows.size(); ++row)
      rows_.emplace(CellInteger(table.rows[row][source_.result]), row);
  }

  // The cells of IntervalColumns for this row.
  std::vector<Cell> Of(const ReportColumn& column, size_t row, size_t value_place, const std::vector<size_t>& results) {
    const bool compares = results.size() == 2;
    std::vector<Cell> cells(compares ? 6 : 2);
    const std::optional<double> value = Number(table_.rows[row][value_place]);
    if (!value || column.steps_of.empty()) return cells;
    std::vector<stats::Estimate> medians;
    for (const size_t place : results) {
      const int64_t result = CellInteger(table_.rows[row][place]);
      // A comparison with itself has no interval.
      if (place != results[0] && result == CellInteger(table_.rows[row][results[0]])) return cells;
      const std::optional<stats::Estimate>& median = Median(result);
      if (!median) return cells;
      medians.push_back(*median);
    }
    const stats::Estimate estimate = compares ? stats::Ratio(medians[0], medians[1]) : medians[0];
    const double factor = stats::Factor(estimate);
    // A change in percent is a factor, and so is a share.
    const bool change = column.style == ValueStyle::kSignedPercent;
    const double whole = change || column.style == ValueStyle::kPercent ? 100 : 1;
    const double none = change ? 1 : 0;
    const double middle = *value / whole + none;
    const double low = middle / factor;
    const double high = middle * factor;
    cells[0] = whole * (low - none);
    cells[1] = whole * (high - none);
    if (!compares) return cells;
    cells[2] = std::string(low > 1 ? "more" : high < 1 ? "less" : "none");
    cells[3] = 100 * std::max(high - 1, 1 - low);
    const int64_t repeats = std::max<int64_t>(1, CellInteger(table_.rows[row][source_.repeats]));
    const double then = std::sqrt(factor);
    cells[4] = stats::RepeatsFor(estimate, repeats, then) - repeats;
    cells[5] = 100 * (then - 1);
    return cells;
  }

 private:
  // The median of a run's measured steps, computed once.
  const std::optional<stats::Estimate>& Median(int64_t result) {
    const auto [it, is_new] = medians_.try_emplace(result);
    const auto row = rows_.find(result);
    if (!is_new || row == rows_.end()) return it->second;
    const std::vector<Cell>& cells = table_.rows[row->second];
    if (const auto* text = std::get_if<std::string>(&cells[source_.all_steps]); text != nullptr && !text->empty()) {
      it->second = MedianOfSteps(*text, CellInteger(cells[source_.warmup]), CellInteger(cells[source_.steps]));
    }
    return it->second;
  }

  const Table& table_;
  const Source source_;
  std::map<int64_t, size_t> rows_;  // by result
  std::map<int64_t, std::optional<stats::Estimate>> medians_;
};

}  // namespace

std::optional<stats::Estimate> MedianOfSteps(const std::string& all_steps_ns, int64_t warmup_steps, int64_t steps) {
  std::vector<std::vector<double>> runs = StepsOfRuns(all_steps_ns, warmup_steps, steps);
  if (runs.size() == 2) {  // two runs do not show how runs vary; their steps are one series
    runs[0].insert(runs[0].end(), runs[1].begin(), runs[1].end());
    runs.pop_back();
  }
  return stats::EstimateMedian(runs);
}

std::vector<ReportColumn> IntervalColumns(const ReportColumn& column) {
  std::vector<ReportColumn> columns;
  if (column.steps_of.empty()) return columns;
  const auto add = [&](std::string name, const char* what, ValueStyle style, ReportColumn::Hide hide) {
    ReportColumn added;
    added.name = std::move(name);
    added.label = column.label + what;
    added.group = column.group;
    added.unit = style == column.style ? column.unit : "";
    added.style = style;
    added.hide = hide;
    columns.push_back(std::move(added));
  };
  using Hide = ReportColumn::Hide;
  add(LowColumn(column.name), ", low", column.style, Hide::kInTables);
  add(HighColumn(column.name), ", high", column.style, Hide::kInTables);
  if (column.steps_of.size() < 2) return columns;
  add(column.name + "_change", ", change", ValueStyle::kText, Hide::kInTables);
  add(column.name + "_within_percent", ", within", ValueStyle::kPercent, Hide::kEverywhere);
  add(column.name + "_more_repeats", ", more repeats", ValueStyle::kInteger, Hide::kEverywhere);
  add(column.name + "_then_percent", ", then", ValueStyle::kPercent, Hide::kEverywhere);
  return columns;
}

void AddIntervals(const Report& report, Table& table) {
  std::vector<const ReportColumn*> columns;
  for (const ReportColumn& column : report.columns) {
    if (!column.steps_of.empty()) columns.push_back(&column);
  }
  if (columns.empty()) return;
  std::vector<std::vector<Cell>> added(table.rows.size());
  std::vector<std::string> names;
  // If the steps give no interval, the query's own counts, such as a prediction's.
  const auto own = [&](const std::string& name) {
    const auto it = std::find(table.columns.begin(), table.columns.end(), name);
    return it == table.columns.end() ? std::nullopt : std::optional(static_cast<size_t>(it - table.columns.begin()));
  };
  Intervals intervals(report, table);
  for (const ReportColumn* column : columns) {
    const size_t value = ColumnIndex(report, table, column->name);
    std::vector<size_t> results;
    for (const std::string& name : column->steps_of) results.push_back(ColumnIndex(report, table, name));
    const std::vector<ReportColumn> beside = IntervalColumns(*column);
    std::vector<std::optional<size_t>> places;
    for (const ReportColumn& each : beside) {
      places.push_back(own(each.name));
      if (!places.back()) names.push_back(each.name);
    }
    for (size_t row = 0; row < table.rows.size(); ++row) {
      std::vector<Cell> cells = intervals.Of(*column, row, value, results);
      for (size_t i = 0; i < cells.size(); ++i) {
        if (!places[i]) {
          added[row].push_back(std::move(cells[i]));
        } else if (!std::holds_alternative<std::monostate>(cells[i])) {
          table.rows[row][*places[i]] = std::move(cells[i]);
        }
      }
    }
  }
  const size_t first = AddColumns(table, names);
  for (size_t row = 0; row < table.rows.size(); ++row) {
    std::move(added[row].begin(), added[row].end(), table.rows[row].begin() + static_cast<std::ptrdiff_t>(first));
    added[row] = {};
  }
}

}  // namespace ridgeline::report
