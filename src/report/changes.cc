#include "report/changes.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "report/steps.h"
#include "stats/change_points.h"

namespace ridgeline::report {
namespace {

size_t ColumnOfChanges(const Report& report, const Table& table, std::string_view name) {
  const auto it = std::find(table.columns.begin(), table.columns.end(), name);
  if (it != table.columns.end()) return static_cast<size_t>(it - table.columns.begin());
  throw Error(ErrorKind::kInvalidInput,
              fmt::format("the report '{}' has changes, for which its query.sql lacks the column '{}'{}", report.name,
                          name, DidYouMean(std::string(name), table.columns)),
              "docs/reports.md lists the columns that changes need");
}

}  // namespace

void AddChanges(const Report& report, Table& table) {
  if (!report.changes) return;
  const auto column = [&](std::string_view name) { return ColumnOfChanges(report, table, name); };
  const size_t of = column(report.changes->of);
  const size_t order = column(report.changes->order);
  const size_t at = column(report.changes->at);
  const size_t failure = column(report_columns::kFailure);
  const size_t all_steps = column("all_steps_ns");
  const size_t warmup = column("warmup_steps");
  const size_t steps = column("steps");
  const size_t median = column("step_median_ns");
  std::map<std::string, std::vector<size_t>> histories;
  for (size_t row = 0; row < table.rows.size(); ++row) {
    const std::vector<Cell>& cells = table.rows[row];
    if (CellText(cells[failure]).empty()) histories[CellText(cells[of])].push_back(row);
  }
  const size_t first = AddColumns(table, {"step_change", "step_change_percent", "step_change_words"});
  for (auto& [name, rows] : histories) {
    std::stable_sort(rows.begin(), rows.end(), [&](size_t a, size_t b) {
      return CellInteger(table.rows[a][order]) < CellInteger(table.rows[b][order]);
    });
    std::vector<stats::HistoryRun> runs;
    std::vector<size_t> row_of;  // the row of each run
    for (const size_t row : rows) {
      const std::vector<Cell>& cells = table.rows[row];
      for (const stats::SteadySteps& run : SteadyRuns(CellText(cells[all_steps]), CellInteger(cells[warmup]),
                                                      CellInteger(cells[steps]), CellInteger(cells[median]))) {
        runs.push_back({CellText(cells[at]), run.log_median});
        row_of.push_back(row);
      }
    }
    for (const stats::ChangePoint& change : stats::ChangePoints(runs)) {
      std::vector<Cell>& cells = table.rows[row_of[change.first]];
      const double percent = 100 * std::expm1(change.change);
      const std::string word = percent > 0 ? "slower" : "faster";
      cells[first] = word;
      cells[first + 1] = percent;
      cells[first + 2] = fmt::format("{:.1f} % {}", std::abs(percent), word);
    }
  }
}

}  // namespace ridgeline::report
