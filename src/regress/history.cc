#include "regress/history.h"

#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "regress/point_names.h"
#include "stats/change_points.h"

namespace ridgeline::regress {
namespace {

// Consecutive runs of one commit, as a build of it was measured.
struct CommitRuns {
  const MeasuredCell* cell = nullptr;
  std::string point;
  std::string commit;
  int64_t ended_unix_ns = 0;  // end of the first run
  int64_t runs = 0;
  double step_ns = 0;
  std::optional<double> change;  // change of the level with this commit, as a share
};

// A commit that is measured again after another one gets one more row.
std::vector<CommitRuns> RowsOf(const MeasuredCell& cell, const std::string& point) {
  std::vector<stats::HistoryRun> history;
  std::vector<CommitRuns> rows;
  std::map<size_t, size_t> row_of_first;  // a commit's first run -> its row
  double sum = 0;
  for (const MeasuredRuns& measured : cell.measurements) {
    for (const double log : measured.log_step_times) {
      if (rows.empty() || rows.back().commit != measured.commit) {
        row_of_first[history.size()] = rows.size();
        rows.push_back({&cell, point, measured.commit, measured.ended_unix_ns, 0, 0, {}});
        sum = 0;
      }
      history.push_back({measured.commit, log});
      sum += log;
      ++rows.back().runs;
      rows.back().step_ns = std::exp(sum / static_cast<double>(rows.back().runs));
    }
  }
  for (const stats::ChangePoint& change : stats::ChangePoints(history)) {
    rows[row_of_first.at(change.first)].change = std::expm1(change.change);
  }
  return rows;
}

std::vector<CommitRuns> AllRows(std::span<const MeasuredCell> cells, bool changed_only) {
  std::vector<std::string> specs;
  for (const MeasuredCell& cell : cells) specs.push_back(cell.spec);
  const std::vector<std::string> names = PointNames(specs);
  std::vector<CommitRuns> all;
  for (size_t i = 0; i < cells.size(); ++i) {
    for (CommitRuns& row : RowsOf(cells[i], names[i])) {
      if (!changed_only || row.change) all.push_back(std::move(row));
    }
  }
  return all;
}

}  // namespace

Table HistoryTable(std::span<const MeasuredCell> cells, bool changed_only) {
  Table table{{"point", "commit", "ended_unix_ns", "runs", "step_ns", "change", "point_id", "setup", "machine"}, {}};
  for (const CommitRuns& row : AllRows(cells, changed_only)) {
    table.rows.push_back({row.point, row.commit, row.ended_unix_ns, row.runs, row.step_ns,
                          row.change ? Cell(*row.change) : Cell(), row.cell->point_id, row.cell->setup,
                          row.cell->machine});
  }
  return table;
}

Table ShortHistoryTable(std::span<const MeasuredCell> cells, bool changed_only) {
  constexpr size_t kShownCommit = 16;
  Table table{{"point", "commit", "measured", "runs", "step time", "since then"}, {}};
  std::set<std::string> setups;
  std::set<std::string> machines;
  const std::vector<CommitRuns> rows = AllRows(cells, changed_only);
  for (const CommitRuns& row : rows) {
    setups.insert(row.cell->setup);
    machines.insert(row.cell->machine);
  }
  if (setups.size() > 1) table.columns.emplace_back("setup");
  if (machines.size() > 1) table.columns.emplace_back("machine");
  for (const CommitRuns& row : rows) {
    std::string change;
    if (row.change) {
      change = fmt::format("{:.1f} % {}", 100 * std::abs(*row.change), *row.change > 0 ? "slower" : "faster");
    }
    table.rows.push_back({row.point, ShortenToCodePoints(row.commit, kShownCommit), FormatUnixTime(row.ended_unix_ns),
                          row.runs, FormatDuration(std::llround(row.step_ns)), change});
    if (setups.size() > 1) table.rows.back().emplace_back(row.cell->setup);
    if (machines.size() > 1) table.rows.back().emplace_back(row.cell->machine);
  }
  return table;
}

}  // namespace ridgeline::regress
