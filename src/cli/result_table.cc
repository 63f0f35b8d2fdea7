#include "cli/result_table.h"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/quoting.h"
#include "base/text.h"
#include "report/differences.h"
#include "report/intervals.h"
#include "report/rows.h"
#include "report/run_columns.h"
#include "run/disturbance.h"
#include "store/views.h"
#include "sweep/sweep.h"

namespace ridgeline::cli {
namespace {

// Formats a number for people. An empty value stays empty.
template <typename T>
Cell Styled(const Cell& cell, std::string (*style)(T)) {
  if (const auto* integer = std::get_if<int64_t>(&cell)) return style(static_cast<T>(*integer));
  if (const auto* number = std::get_if<double>(&cell)) return style(static_cast<T>(*number));
  return cell;
}

std::string TextOf(const Cell& cell) {
  const auto* text = std::get_if<std::string>(&cell);
  return text == nullptr ? "" : *text;
}

// " ± " and half of the throughput's confidence interval from its steps; empty if there are too few steps.
std::string HalfOfInterval(const Cell& tokens_per_s, const std::string& all_steps_ns, int64_t warmup_steps,
                           int64_t steps) {
  const auto* value = std::get_if<double>(&tokens_per_s);
  if (value == nullptr || all_steps_ns.empty()) return {};
  const std::optional<stats::Estimate> median = report::MedianOfSteps(all_steps_ns, warmup_steps, steps);
  if (!median) return {};
  const double factor = stats::Factor(*median);
  return " ± " + FormatCount(*value * (factor - 1 / factor) / 2);
}

// Removes a column that is empty in every row.
void DropWhereEmpty(Table& table, size_t column) {
  const auto says_nothing = [&](const std::vector<Cell>& row) { return CellText(row[column]).empty(); };
  if (!std::all_of(table.rows.begin(), table.rows.end(), says_nothing)) return;
  const auto at = static_cast<std::ptrdiff_t>(column);
  table.columns.erase(table.columns.begin() + at);
  for (auto& row : table.rows) row.erase(row.begin() + at);
}

// The SQL of a point's field. A field that only one trainer has, has no column, and is empty for other trainers'
// points.
std::string ColumnSql(const Field& field) {
  if (!field.is_own()) return fmt::format("{} AS {}", store::FieldSql(field), field.name);
  const char* as = field.type() == "true or false" ? "->" : "->>";  // gives true instead of 1
  return fmt::format("p.spec {} '$.own.{}' AS \"{}\"", as, field.name, field.name);
}

// Marks the throughputs that others disturbed; the heading instead if they disturbed all of several.
void MarkDisturbed(const report::RunColumn& disturbed, size_t place, Table& table) {
  const auto has_figure = [&](const std::vector<Cell>& row) { return !CellText(row[place]).empty(); };
  const auto figures = std::count_if(table.rows.begin(), table.rows.end(), has_figure);
  if (figures > 1 && figures == std::ssize(disturbed.cells)) {
    table.columns[place] += fmt::format(" {}", report::kDisturbedMark);
    return;
  }
  for (const auto& [row, share] : disturbed.cells) {
    table.rows[row][place] = fmt::format("{} {}", CellText(table.rows[row][place]), report::kDisturbedMark);
  }
}

// Adds the columns that follow from a run's figures behind its throughput at `place`. Adds the trainers' own figures of
// memory beside the device's memory, and the others behind the process's. The note is there already. Marks a throughput
// that other programs disturbed.
void AddSaid(const std::vector<report::RunColumn>& columns, size_t place, Table& table) {
  constexpr size_t kToDevice = 2;  // columns from the throughput: planned, device peak, RSS
  size_t behind_throughput = place + 1;
  size_t beside_device = behind_throughput + kToDevice;
  size_t behind_memory = beside_device + 1;
  const auto peaks = std::find_if(columns.begin(), columns.end(), [](const report::RunColumn& said) {
    return said.column.name == "peak_tflops_per_gpu";
  });
  for (const report::RunColumn& said : columns) {
    const report::ReportColumn& column = said.column;
    if (column.name == report::report_columns::kDisturbed) {
      MarkDisturbed(said, place, table);
      continue;
    }
    if (column.name == "run_note" || column.hide == report::ReportColumn::Hide::kInTables) continue;
    const bool of_device = column.name.starts_with("device_");
    const bool follows = column.name.starts_with("step_") || report::IsOfGpu(column.name);
    size_t& next = follows ? behind_throughput : of_device ? beside_device : behind_memory;
    const auto at = static_cast<std::ptrdiff_t>(next);
    const std::string label = column.name == report::kRunColumn ? "run" : column.label;
    table.columns.insert(table.columns.begin() + at,
                         column.unit.empty() ? label : fmt::format("{} ({})", label, column.unit));
    for (size_t row = 0; row < table.rows.size(); ++row) {
      const auto cell = said.cells.find(row);
      Cell text = cell == said.cells.end() ? Cell() : Cell(report::FormatValue(column.style, cell->second));
      // Numbers stand to the right.
      if (column.name == report::kRunColumn && cell != said.cells.end()) text = cell->second;
      if (peaks != columns.end() && peaks->cells.contains(row) && column.name == "mfu") {
        text = CellText(text) + " of " + report::FormatValue(peaks->column.style, peaks->cells.at(row));
      }
      table.rows[row].insert(table.rows[row].begin() + at, text);
    }
    if (follows) ++behind_throughput;
    if (follows || of_device) ++beside_device;
    ++behind_memory;
  }
}

// The prediction for a point, beside its measurement. The difference is the predicted figure divided by the measured
// one, minus 1.
constexpr std::array<const char*, 3> kPredictedColumns = {"predicted tokens/s", "predicted-measured",
                                                          "memory, predicted-measured"};

// The cells for the predicted steady throughput: the ends of its interval, its difference, and the difference of the
// memory.
std::vector<Cell> PredictedCells(const std::vector<Cell>& of) {
  const auto number = [&](size_t i) {
    const auto* value = std::get_if<double>(&of[i]);
    return value == nullptr ? std::nullopt : std::optional(*value);
  };
  std::vector<Cell> cells(kPredictedColumns.size());
  if (const auto value = number(0)) {
    std::string text = FormatCount(*value);
    if (number(1) && number(2)) text += " ± " + FormatCount((*number(2) - *number(1)) / 2);
    cells[0] = std::move(text);
  }
  for (size_t i = 1; i < cells.size(); ++i) {
    if (const auto percent = number(i + 2)) cells[i] = fmt::format("{:+.1f}%", *percent);
  }
  return cells;
}

void AddPredicted(const std::vector<std::vector<Cell>>& predicted, Table& table) {
  table.columns.insert(table.columns.end() - 1, kPredictedColumns.begin(), kPredictedColumns.end());
  for (size_t row = 0; row < table.rows.size(); ++row) {
    table.rows[row].insert(table.rows[row].end() - 1, predicted[row].begin(), predicted[row].end());
  }
}

}  // namespace

Table ResultTable(store::Store& store, const sweep::Sweep& sweep) {
  std::vector<const Field*> varying = sweep::VaryingFields(sweep);
  if (varying.empty()) varying.push_back(FindField("model"));
  std::string fields;
  for (const Field* field : varying) fields += ColumnSql(*field) + ", ";
  Table table = store.Query(
      fmt::format("SELECT {}coalesce(r.status, 'no result') AS status, r.steady_tokens_per_s AS \"tokens/s\", "
                  "r.planned_peak_bytes AS planned, r.device_peak_bytes AS \"device peak\", r.rss_peak_bytes AS RSS, "
                  "nullif(ltrim(iif(r.emulated, 'emulated', '') || ifnull(', ' || {}, ''), ', '), '') AS note, "
                  "iif(p.repeats > 1 AND r.status = 'ok', r.all_steps_ns, '') AS steps_of_repeats, p.warmup_steps, "
                  "p.steps, f.predicted_steady_tokens_per_s, f.predicted_steady_tokens_per_s_low, "
                  "f.predicted_steady_tokens_per_s_high, f.steady_difference_percent, f.memory_difference_percent, "
                  "r.number "
                  "FROM sweep_points AS s JOIN sweeps AS w ON w.name = s.sweep JOIN points AS p ON p.id = s.point_id "
                  "LEFT JOIN results AS r ON r.point_id = p.id AND r.attempt = (SELECT max(attempt) FROM results "
                  "WHERE point_id = p.id AND setup = ifnull(s.setup, w.setup) AND campaign = w.campaign) "
                  "LEFT JOIN forecasts AS f ON f.result = r.number "
                  "WHERE s.sweep = {} ORDER BY s.ordinal",
                  fields, store::RunNoteSql(), SqlText(sweep.name)));
  const size_t first_figure = varying.size() + 1;
  const size_t first_of_spread = first_figure + 5;  // it follows planned, device peak, RSS and note
  std::vector<std::optional<int64_t>> results;
  std::vector<std::vector<Cell>> predicted;
  std::set<std::string> told;
  for (const Field* field : varying) told.emplace(field->name);
  for (auto& row : table.rows) {
    const auto* number = std::get_if<int64_t>(&row.back());
    results.push_back(number == nullptr ? std::nullopt : std::optional(*number));
    row.pop_back();
    const int64_t steps = CellInteger(row[first_of_spread + 2]);
    const std::string spread =
        HalfOfInterval(row[first_figure], TextOf(row[first_of_spread]), CellInteger(row[first_of_spread + 1]), steps);
    predicted.push_back(PredictedCells({row.begin() + static_cast<std::ptrdiff_t>(first_of_spread) + 3, row.end()}));
    row.resize(first_of_spread);
    row[first_figure] = Styled<double>(row[first_figure], FormatCount);
    if (!spread.empty()) row[first_figure] = CellText(row[first_figure]) + spread;
    for (size_t bytes = first_figure + 1; bytes <= first_figure + 3; ++bytes) {
      row[bytes] = Styled<int64_t>(row[bytes], FormatBytes);
    }
  }
  table.columns.resize(first_of_spread);
  AddSaid(report::RunColumnsOf(store, results), first_figure, table);
  const std::vector<std::string> differences = report::TellApart(store, results, told);
  for (size_t i = 0; i < differences.size(); ++i) {
    if (differences[i].empty()) continue;
    const std::string note = CellText(table.rows[i].back());
    table.rows[i].back() = note + (note.empty() ? "" : ", ") + differences[i];
  }
  const size_t before_note = table.columns.size() - 1;
  AddPredicted(predicted, table);
  DropWhereEmpty(table, table.columns.size() - 1);
  for (size_t i = kPredictedColumns.size(); i-- > 0;) DropWhereEmpty(table, before_note + i);
  const auto device = std::find(table.columns.begin(), table.columns.end(), "device peak") - table.columns.begin();
  DropWhereEmpty(table, static_cast<size_t>(device));
  return table;
}

std::string BelowTable(const Table& table) {
  std::string text;
  const auto is_marked = [](const std::vector<Cell>& row) {
    return std::any_of(row.begin(), row.end(),
                       [](const Cell& cell) { return TextOf(cell).ends_with(report::kDisturbedMark); });
  };
  const bool all_are = std::any_of(table.columns.begin(), table.columns.end(),
                                   [](const std::string& name) { return name.ends_with(report::kDisturbedMark); });
  if (all_are || std::any_of(table.rows.begin(), table.rows.end(), is_marked)) {
    text += fmt::format(
        "{}: {}others held more than {:.0f} % of the cores: measure {} again on a quiet machine (--again)\n",
        report::kDisturbedMark, all_are ? "in every run " : "", 100 * kHeadlineShare, all_are ? "them" : "it");
  }
  if (std::find(table.columns.begin(), table.columns.end(), "MFU") != table.columns.end()) {
    text +=
        "MFU: the model's FLOPs, causal attention counted as half, recomputation not, over the GPU's dense peak in "
        "TFLOP/s\n";
  }
  return text;
}

}  // namespace ridgeline::cli
