#include "report/run_columns.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/json.h"
#include "run/result.h"
#include "store/store.h"
#include "store/views.h"

namespace ridgeline::report {
namespace {

constexpr std::string_view kMemory = "device_peak_bytes";
constexpr std::string_view kNote = "run_note";
constexpr std::string_view kMedian = "step_median_ns";
constexpr std::string_view kSteady = "steady_tokens_per_s";

ReportColumn Column(std::string name, std::string label, ValueStyle style, std::string help) {
  ReportColumn column;
  column.name = std::move(name);
  column.label = std::move(label);
  column.style = style;
  column.help = std::move(help);
  column.hide = ReportColumn::Hide::kEmpty;
  return column;
}

// A column that every result may have, with its SQL over `r`, its row of `results`, and `p`, its point.
struct FixedColumn {
  std::string_view name;
  std::string_view label;
  ValueStyle style;
  std::string_view help;
  std::string sql;
  std::string_view group = {};
  ReportColumn::Hide hide = ReportColumn::Hide::kEmpty;
  bool key = false;
};

// In the order of a table. Columns of memory come beside the memory, those of steps after the steps' median, and those
// of a GPU after the throughput.
std::vector<FixedColumn> FixedColumns() {
  constexpr std::string_view kOfGpu = "Model FLOPs, causal attention as half";
  constexpr std::string_view kOfEnergy = "Energy of a GPU";
  constexpr std::string_view kOfCost = "Cost";
  constexpr auto kInTables = ReportColumn::Hide::kInTables;
  constexpr auto kEmpty = ReportColumn::Hide::kEmpty;
  return {
      {"device_peak_kind", "of the device, as", ValueStyle::kText,
       "What the device memory counts: allocated (by tensors), in use (on the card, by all processes), or NVML (held "
       "by the trainer's processes).",
       "nullif(r.device_peak_kind, '')"},
      {"device_reserved_bytes", "reserved", ValueStyle::kBytes,
       "The most of the device's memory that the trainer's allocator had reserved, tensors in it or not.",
       "r.device_reserved_bytes"},
      {kMedian, "step median", ValueStyle::kDuration, "Over the measured steps.", "r.step_median_ns"},
      {"step_mean_ns", "mean", ValueStyle::kDuration,
       "Mean of the measured steps. If it is far above the median, some steps stall, for example every tenth.",
       store::DerivedSql("step_mean_ns")},
      {"step_cv", "cv", ValueStyle::kFraction,
       "Coefficient of variation of the measured steps: standard deviation over mean.", "r.step_cv"},
      {"tokens_per_s_per_gpu", "tokens/s a GPU", ValueStyle::kCount, "Steady throughput over the GPUs that had it.",
       store::DerivedSql("tokens_per_s_per_gpu")},
      {"tflops_per_gpu", "TFLOP/s a GPU", ValueStyle::kNumber,
       "FLOPs of the model over the median step: causal attention counts as half, recomputation does not count.",
       store::DerivedSql("tflops_per_gpu"), kOfGpu},
      {"mfu", "MFU", ValueStyle::kFraction,
       "Model FLOPs utilization: those TFLOP/s as a share of the GPU's peak, which stands behind it. The CSV has it "
       "with attention over the full "
       "square, too.",
       store::DerivedSql("mfu"), kOfGpu, kEmpty, true},
      {"peak_tflops_per_gpu", "peak TFLOP/s", ValueStyle::kNumber,
       "Dense peak of the GPU in the run's precision, from its data sheet.", store::DerivedSql("peak_tflops_per_gpu"),
       kOfGpu, kInTables},
      {"tflops_per_gpu_noncausal", "TFLOP/s a GPU, full square", ValueStyle::kNumber,
       "FLOPs of the model, with attention counted over the full square.",
       store::DerivedSql("tflops_per_gpu_noncausal"), kOfGpu, kInTables},
      {"mfu_noncausal", "MFU, full square", ValueStyle::kFraction,
       "Model FLOPs utilization, attention counted over the full square.", store::DerivedSql("mfu_noncausal"), kOfGpu,
       kInTables},
      {"printed_mfu", "MFU, as printed", ValueStyle::kFraction,
       "Model FLOPs utilization, as the trainer prints it by its own convention.", "r.printed_mfu"},
      {"printed_tflops_per_gpu", "TFLOP/s, as printed", ValueStyle::kNumber,
       "Figure of one GPU, as the trainer prints it, by its own convention.", "r.printed_tflops_per_gpu"},
      {"energy_j_per_step", "J a step", ValueStyle::kNumber,
       "Taken by the GPU of rank 0 in the measured steps, as NVML counts it.", store::DerivedSql("energy_j_per_step"),
       kOfEnergy},
      {"energy_j_per_token", "J a token", ValueStyle::kNumber, "The same, over that GPU's share of the tokens.",
       store::DerivedSql("energy_j_per_token"), kOfEnergy},
      {"billed_usd", "billed USD", ValueStyle::kNumber,
       "What the run's job was billed, at the sweep's price of a node. Runs of one job share it by their times.",
       store::DerivedSql("billed_usd"), kOfCost},
      {"predicted_usd", "predicted USD", ValueStyle::kNumber, "The price that was predicted for the run before it.",
       store::DerivedSql("predicted_usd"), kOfCost},
      {report_columns::kDisturbed, "Cores held by others", ValueStyle::kFraction,
       "Share of the cores' time that other processes took. It is shown if it was so large that no conclusion is drawn "
       "from the run's times.",
       store::DerivedSql(report_columns::kDisturbed), "", kInTables},
      {kRunColumn, "Run", ValueStyle::kInteger,
       "The run's number in this database, as `ridgeline db delete --run` and the addresses of `ridgeline serve` take "
       "it; `result` in SQL.",
       "r.number"},
      {kNote, "Note", ValueStyle::kText, "Remarks about the measurement.", store::RunNoteSql(), "", kEmpty, true},
  };
}

std::vector<RunColumn> EmptyColumns(const std::vector<FixedColumn>& fixed) {
  std::vector<RunColumn> columns;
  for (const FixedColumn& from : fixed) {
    ReportColumn column = Column(std::string(from.name), std::string(from.label), from.style, std::string(from.help));
    column.group = from.group;
    column.hide = from.hide;
    column.key = from.key;
    columns.push_back({std::move(column), {}});
  }
  return columns;
}

// The results' numbers, these columns of them, and their own metrics.
Table Said(store::Store& store, const std::vector<FixedColumn>& fixed,
           const std::vector<std::optional<int64_t>>& results) {
  Json numbers = Json::array();
  for (const auto& result : results) {
    if (result) numbers.push_back(*result);
  }
  std::string sql = "SELECT r.number";
  for (const FixedColumn& column : fixed) sql += fmt::format(", {} AS {}", column.sql, column.name);
  return store.Query(sql +
                         ", r.metrics FROM results AS r JOIN points AS p ON p.id = r.point_id "
                         "WHERE r.number IN (SELECT value FROM json_each(:numbers))",
                     {{"numbers", DumpJson(numbers)}});
}

using ByName = std::map<std::string, std::map<std::string, RunColumn>>;  // by name, then by unit

void AddOwn(const std::string& json, size_t place, ByName& own) {
  for (const auto& [name, figure] : DecodeOwnFigures(ParseJson(json, "the metrics in the store"))) {
    own[name][figure.unit].cells[place] = figure.value;
  }
}

// Appends each by its name, in the order of these.
void Append(ByName& own, std::vector<RunColumn>& columns) {
  size_t count = 0;
  for (auto& [name, units] : own) {
    for (auto& [unit, said] : units) {
      if (count++ == kMostOwnColumns) return;
      said.column = Column("metric." + name + (units.size() > 1 ? fmt::format(" ({})", unit) : ""), name,
                           ValueStyle::kNumber, "As the trainer's definition names it.");
      said.column.unit = unit;
      columns.push_back(std::move(said));
    }
  }
}

}  // namespace

bool IsOfGpu(std::string_view name) {
  return !name.starts_with("printed_") && (name.find("_per_gpu") != std::string_view::npos || name.starts_with("mfu"));
}

std::vector<RunColumn> RunColumnsOf(store::Store& store, const std::vector<std::optional<int64_t>>& results) {
  std::multimap<int64_t, size_t> places;
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i]) places.emplace(*results[i], i);
  }
  const std::vector<FixedColumn> fixed = FixedColumns();
  std::vector<RunColumn> columns = EmptyColumns(fixed);
  ByName own;
  for (const auto& row : Said(store, fixed, results).rows) {
    const auto [begin, end] = places.equal_range(std::get<int64_t>(row[0]));
    for (auto it = begin; it != end; ++it) {
      for (size_t c = 0; c < columns.size(); ++c) {
        if (!CellText(row[c + 1]).empty()) columns[c].cells[it->second] = row[c + 1];
      }
      if (const std::string metrics = CellText(row.back()); metrics != "{}") AddOwn(metrics, it->second, own);
    }
  }
  // The run's number and the note come last.
  std::vector<RunColumn> last(std::make_move_iterator(columns.end() - 2), std::make_move_iterator(columns.end()));
  columns.resize(columns.size() - 2);
  Append(own, columns);
  std::move(last.begin(), last.end(), std::back_inserter(columns));
  std::erase_if(columns, [](const RunColumn& said) { return said.cells.empty(); });
  return columns;
}

void AddRunColumns(Report& report, store::Store& store, Table& table) {
  const auto result = std::find(table.columns.begin(), table.columns.end(), "result") - table.columns.begin();
  if (result == std::ssize(table.columns)) return;
  std::vector<std::optional<int64_t>> results;
  for (const auto& row : table.rows) {
    const auto* number = std::get_if<int64_t>(&row[static_cast<size_t>(result)]);
    results.push_back(number == nullptr ? std::nullopt : std::optional(*number));
  }
  const auto at = [&](std::string_view name) {
    return std::find_if(report.columns.begin(), report.columns.end(),
                        [&](const ReportColumn& column) { return column.name == name; });
  };
  // Adds a column after `name` and after those that already follow it.
  const auto behind = [&](std::string_view name, const auto& follows) {
    const auto first = at(name);
    return first == report.columns.end() ? first : std::find_if_not(first + 1, report.columns.end(), follows);
  };
  // Without a key column of its own, a report's tables fold nothing.
  const bool has_keys = std::ranges::any_of(report.columns, [](const ReportColumn& column) { return column.key; });
  for (RunColumn& said : RunColumnsOf(store, results)) {
    said.column.key = said.column.key && has_keys;
    const std::string& name = said.column.name;
    if (at(name) != report.columns.end()) continue;
    auto before = at(report_columns::kProvenance);
    if (name.starts_with("device_")) {
      const auto memory = at(kMemory);
      if (memory == report.columns.end()) continue;
      said.column.group = memory->group;
      before = behind(kMemory, [](const ReportColumn& column) { return column.name.starts_with("device_"); });
    } else if (name.starts_with("step_")) {
      const auto median = at(kMedian);
      if (median == report.columns.end()) continue;
      said.column.group = median->group;
      if (median->group.empty() && name == "step_mean_ns") said.column.label = "Mean step";
      before = behind(kMedian, [](const ReportColumn& column) { return column.name == "step_mean_ns"; });
    } else if (IsOfGpu(name)) {
      if (at(kSteady) == report.columns.end()) continue;
      before = behind(kSteady, [](const ReportColumn& column) {
        return column.name.starts_with(kSteady) || column.name.starts_with("cold_tokens_per_s") ||
               column.name == "rank_tokens_per_s" || IsOfGpu(column.name);
      });
    } else if (name == kNote && at(report_columns::kFailure) != report.columns.end()) {
      before = at(report_columns::kFailure) + 1;
    }
    // A query that has the column without showing it has the same values.
    if (std::find(table.columns.begin(), table.columns.end(), name) == table.columns.end()) {
      const size_t place = AddColumns(table, {name});
      for (auto& [row, cell] : said.cells) table.rows[row][place] = std::move(cell);
    }
    report.columns.insert(before, std::move(said.column));
  }
}

}  // namespace ridgeline::report
