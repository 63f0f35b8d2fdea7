#include "report/said.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/json.h"
#include "run/result.h"
#include "store/store.h"
#include "store/views.h"

namespace ridgeline {
namespace {

constexpr std::string_view kMemory = "device_peak_bytes";
constexpr std::string_view kNote = "run_note";

ReportColumn Column(std::string name, std::string label, ValueStyle style, std::string help) {
  ReportColumn column;
  column.name = std::move(name);
  column.label = std::move(label);
  column.style = style;
  column.help = std::move(help);
  column.hide = ReportColumn::Hide::kEmpty;
  return column;
}

// Those that every result may have, as the query below gives them.
std::vector<SaidColumn> FixedColumns() {
  std::vector<SaidColumn> columns;
  const auto add = [&](ReportColumn column) { columns.push_back({std::move(column), {}}); };
  add(Column("device_peak_kind", "of the device, as", ValueStyle::kText,
             "What the device's memory counts: allocated (what tensors took), in use (of the card, whoever has it), or "
             "NVML (what the trainer's processes held)."));
  add(Column("device_reserved_bytes", "reserved", ValueStyle::kBytes,
             "The most of the device's memory that the trainer's allocator had reserved, tensors in it or not."));
  add(Column("printed_mfu", "MFU, as printed", ValueStyle::kFraction,
             "Model FLOPs utilization, as the trainer prints it by its own convention."));
  add(Column("printed_tflops_per_gpu", "TFLOP/s, as printed", ValueStyle::kNumber,
             "Of a GPU, as the trainer prints it by its own convention."));
  add(Column(std::string(kNote), "Note", ValueStyle::kText, "What there is to say of the measurement."));
  columns.back().column.key = true;
  return columns;
}

// All results that say something of this.
Table Said(Store& store, const std::vector<std::optional<int64_t>>& results) {
  Json numbers = Json::array();
  for (const auto& result : results) {
    if (result) numbers.push_back(*result);
  }
  return store.Query(
      fmt::format("SELECT * FROM (SELECT r.number, nullif(r.device_peak_kind, '') AS kind, r.device_reserved_bytes, "
                  "r.printed_mfu, r.printed_tflops_per_gpu, {} AS note, r.metrics "
                  "FROM results AS r JOIN points AS p ON p.id = r.point_id "
                  "WHERE r.number IN (SELECT value FROM json_each(:numbers))) "
                  "WHERE coalesce(kind, device_reserved_bytes, printed_mfu, printed_tflops_per_gpu, note) IS NOT NULL "
                  "OR metrics <> '{{}}'",
                  RunNoteSql()),
      {{"numbers", DumpJson(numbers)}});
}

using ByName = std::map<std::string, std::map<std::string, SaidColumn>>;  // then by unit

void AddOwn(const std::string& json, size_t place, ByName& own) {
  for (const auto& [name, figure] : DecodeOwnFigures(ParseJson(json, "the metrics in the store"))) {
    own[name][figure.unit].cells[place] = figure.value;
  }
}

// Each by its name, in the order of these.
void Append(ByName& own, std::vector<SaidColumn>& columns) {
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

std::vector<SaidColumn> WhatTheySay(Store& store, const std::vector<std::optional<int64_t>>& results) {
  std::multimap<int64_t, size_t> places;
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i]) places.emplace(*results[i], i);
  }
  std::vector<SaidColumn> columns = FixedColumns();
  ByName own;
  for (const auto& row : Said(store, results).rows) {
    const auto [begin, end] = places.equal_range(std::get<int64_t>(row[0]));
    for (auto it = begin; it != end; ++it) {
      for (size_t c = 0; c < columns.size(); ++c) {
        if (!CellText(row[c + 1]).empty()) columns[c].cells[it->second] = row[c + 1];
      }
      AddOwn(CellText(row.back()), it->second, own);
    }
  }
  SaidColumn note = std::move(columns.back());
  columns.pop_back();
  Append(own, columns);
  columns.push_back(std::move(note));
  std::erase_if(columns, [](const SaidColumn& said) { return said.cells.empty(); });
  return columns;
}

void AddWhatTheySay(Report& report, Store& store, Table& table) {
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
  for (SaidColumn& said : WhatTheySay(store, results)) {
    if (at(said.column.name) != report.columns.end()) continue;
    auto before = at(report_columns::kProvenance);
    if (said.column.name.starts_with("device_")) {
      const auto memory = at(kMemory);
      if (memory == report.columns.end()) continue;
      said.column.group = memory->group;
      before = std::find_if(memory + 1, report.columns.end(),
                            [](const ReportColumn& column) { return !column.name.starts_with("device_"); });
    } else if (said.column.name == kNote && at(report_columns::kFailure) != report.columns.end()) {
      before = at(report_columns::kFailure) + 1;
    }
    // A query that has it, and does not show it, has the same.
    if (std::find(table.columns.begin(), table.columns.end(), said.column.name) == table.columns.end()) {
      table.columns.push_back(said.column.name);
      for (size_t row = 0; row < table.rows.size(); ++row) {
        const auto cell = said.cells.find(row);
        table.rows[row].push_back(cell == said.cells.end() ? Cell() : cell->second);
      }
    }
    report.columns.insert(before, std::move(said.column));
  }
}

}  // namespace ridgeline
