// Additional columns for single runs, beside the figures that every report requests: what follows from them, such as
// MFU and the mean step; what a GPU's memory figure counts; the trainer's own MFU; figures that its definition names;
// and notes on the measurement.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "base/table.h"
#include "report/report.h"

namespace ridgeline::store {
class Store;
}  // namespace ridgeline::store

namespace ridgeline::report {

// A run's number: the column `result` of the views, and the table's column "run".
inline constexpr std::string_view kRunColumn = "result";

struct RunColumn {
  ReportColumn column;
  std::map<size_t, Cell> cells;  // by the index of a result; at least one
};

// The most figures named by definitions that get a column. `ridgeline query` has all of them.
inline constexpr size_t kMostOwnColumns = 64;

// The columns in which any of these results (their numbers in the store) has a value, in the order of a table: those of
// memory first, `run_note` last. "metric.NAME" is a definition's own figure; in another unit, "metric.NAME (UNIT)".
std::vector<RunColumn> RunColumnsOf(store::Store& store, const std::vector<std::optional<int64_t>>& results);

// Whether the column of this name concerns a GPU's work: TFLOP/s, tokens/s and MFU per GPU.
bool IsOfGpu(std::string_view name);

// Adds these columns to a report and its answer, except those that it already has. The column of what memory counts
// goes beside the memory, and only into reports that have it. An answer without the column `result` is unchanged.
void AddRunColumns(Report& report, store::Store& store, Table& table);

}  // namespace ridgeline::report
