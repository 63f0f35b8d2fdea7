// What there is to say of single runs beside the figures that every report asks for: what follows from them, such as
// MFU and the mean step; what its GPU's memory counts, the trainer's own MFU, figures that its definition names, and
// what there is to note of the measurement.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "base/table.h"
#include "report/report.h"

namespace ridgeline {

class Store;

struct SaidColumn {
  ReportColumn column;
  std::map<size_t, Cell> cells;  // by the place of a result; at least one
};

// Of figures that definitions name, so many at most have a column: `ridgeline query` has all of them.
inline constexpr size_t kMostOwnColumns = 64;

// The columns that any of these results (their numbers in the store) has something in, in the order of a table: those
// of memory first, `run_note` last. "metric.NAME" is a definition's own figure; of another unit, "metric.NAME (UNIT)".
std::vector<SaidColumn> WhatTheySay(Store& store, const std::vector<std::optional<int64_t>>& results);

// Whether the column of this name is of a GPU's work: of its TFLOP/s, tokens/s and MFU.
bool IsOfGpu(std::string_view name);

// Gives a report and its answer these columns, but those that it has itself. What memory counts goes beside the
// memory, and into no report without it. An answer without the column `result` is left as it is.
void AddWhatTheySay(Report& report, Store& store, Table& table);

}  // namespace ridgeline
