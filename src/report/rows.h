// The query's answer, read by column name and divided into panels.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/table.h"
#include "report/facts.h"
#include "report/report.h"

namespace ridgeline::report {

// Rows of one panel, in the query's order: indices into Rows.
struct Panel {
  std::string title;
  std::vector<size_t> rows;
};

class Rows {
 public:
  // Adds the intervals of the columns that have them. Throws Error(kInvalidInput) if the answer lacks a column that the
  // report names.
  Rows(const Report& report, Table table);

  size_t size() const { return table_.rows.size(); }
  const Table& table() const { return table_; }

  const Cell& At(size_t row, std::string_view column) const;
  std::string Text(size_t row, std::string_view column) const { return CellText(At(row, column)); }
  std::optional<double> Number(size_t row, std::string_view column) const;  // nothing for text or without a value
  // The numbers of a JSON array, with NaN for null; none without a value. Throws Error(kInvalidInput) for other text.
  std::vector<double> Series(size_t row, std::string_view column) const;
  bool Failed(size_t row) const { return !Text(row, report_columns::kFailure).empty(); }
  bool Emulated(size_t row) const { return Number(row, report_columns::kEmulated).value_or(0) != 0; }

  // Whether the column's figure has times that others disturbed: those of the row's run, or of the run with which it is
  // compared.
  bool Disturbed(size_t row, const ReportColumn& column) const;
  // Whether a mark says so at the figure. If others disturbed all of several runs, the panel's line says it once
  // instead.
  bool MarksAsDisturbed(size_t row, const ReportColumn& column) const {
    return !all_are_disturbed_ && Disturbed(row, column);
  }
  bool AllAreDisturbed() const { return all_are_disturbed_; }
  // The disturbed share of the row's own run; nothing if it was not disturbed.
  std::optional<double> DisturbedShare(size_t row) const { return Number(row, report_columns::kDisturbed); }

  // "3 runs", or the report's name for its rows.
  std::string Counted(size_t count) const;
  const Report& report() const { return report_; }

  // The columns that the report shows, in its order: those of CSV and JSON. Takes the values from this object row by
  // row, because a second copy of a large answer would take hundreds of megabytes.
  Table Shown() &&;

 private:
  const Report& report_;
  Table table_;
  std::map<std::string, size_t, std::less<>> index_;  // the columns' indices
  std::set<int64_t> disturbed_;                       // numbers of disturbed results
  bool all_are_disturbed_ = false;                    // all of several measured runs
};

std::vector<Panel> MakePanels(const Rows& rows);

// The facts of the environment of the row's run; empty if it has none. Throws Error(kInvalidInput) if they are no
// mapping.
ShownFacts EnvironmentFacts(const Rows& rows, size_t row);

// A machine and its software that produced runs. The command does not distinguish environments, because it differs from
// run to run.
struct Environment {
  ShownFacts facts;
  std::string command;  // the first run's
  int64_t runs = 0;
};

std::vector<Environment> DistinctEnvironments(const Rows& rows);

// The report's columns that a table over these rows shows.
std::vector<const ReportColumn*> TableColumns(const Report& report, const Rows& rows, std::span<const size_t> panel);

// The panel's summary: its columns, and one row per group, the first that did not fail if there is one. Nothing if the
// report has none.
struct SummaryTable {
  std::vector<const ReportColumn*> columns;
  std::vector<size_t> rows;
};
SummaryTable Summarize(const Report& report, const Rows& rows, std::span<const size_t> panel);

// The report's column of that name, else nullptr.
const ReportColumn* FindColumn(const Report& report, std::string_view name);

// Whether it is a duration or follows from one, judged by its style, unit and name. False for predictions.
bool IsOfTime(const ReportColumn& column);

// Marks a figure with times that others disturbed.
inline constexpr std::string_view kDisturbedMark = "\xE2\x80\xA0";

// A value for people; an en dash without a value.
std::string FormatValue(ValueStyle style, const Cell& cell);

// A row's value of a column, with half of its interval if NAME_low and NAME_high give one: "2.47 × ± 0.31". Has a mark
// if others disturbed it.
std::string FormatFigure(const ReportColumn& column, const Rows& rows, size_t row);

// The value inside a sentence: with its unit.
std::string FormatInSentence(const ReportColumn& column, const Cell& cell);

// The panel in words: those of the report's sentences that apply to these rows. Marks figures that were not measured.
std::vector<std::string> Conclude(const Report& report, const Rows& rows, std::span<const size_t> panel);

}  // namespace ridgeline::report
