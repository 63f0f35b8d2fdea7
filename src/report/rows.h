// The query's answer, read by column name, and cut into panels.
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

namespace ridgeline {

// Rows of one panel, in the query's order: indices into Rows.
struct Panel {
  std::string title;
  std::vector<size_t> rows;
};

class Rows {
 public:
  // Adds the intervals of the columns that have them. Throws Error(kInvalidInput) where the answer lacks a column that
  // the report names.
  Rows(const Report& report, Table table);

  size_t size() const { return table_.rows.size(); }
  const Table& table() const { return table_; }

  const Cell& At(size_t row, std::string_view column) const;
  std::string Text(size_t row, std::string_view column) const { return CellText(At(row, column)); }
  std::optional<double> Number(size_t row, std::string_view column) const;  // nothing for text and for no value
  // Of a JSON array, NaN for what is null in it; nothing for no value. Throws Error(kInvalidInput) for other text.
  std::vector<double> Series(size_t row, std::string_view column) const;
  bool Failed(size_t row) const { return !Text(row, report_columns::kFailure).empty(); }
  bool Emulated(size_t row) const { return Number(row, report_columns::kEmulated).value_or(0) != 0; }

  // Whether the column's figure is of times that others disturbed: the row's run's, or that's with which it is
  // compared.
  bool Disturbed(size_t row, const ReportColumn& column) const;
  // Of the row's own run; nothing where it was not disturbed.
  std::optional<double> DisturbedShare(size_t row) const { return Number(row, report_columns::kDisturbed); }

  // "3 runs", or what else the report calls its rows.
  std::string Counted(size_t count) const;
  const Report& report() const { return report_; }

  // The columns the report shows, in its order: what CSV and JSON hold.
  Table Shown() const;

 private:
  const Report& report_;
  Table table_;
  std::map<std::string, size_t, std::less<>> index_;  // of the columns
  std::set<int64_t> disturbed_;                       // results
};

std::vector<Panel> MakePanels(const Rows& rows);

// What the row's run says of where it ran; empty where it says nothing. Throws Error(kInvalidInput) for no mapping.
Facts EnvironmentFacts(const Rows& rows, size_t row);

// A machine and its software that runs came from. The command differs from run to run: it tells no environments apart.
struct Environment {
  Facts facts;
  std::string command;  // of the first run
  int64_t runs = 0;
};

std::vector<Environment> DistinctEnvironments(const Rows& rows);

// The report's columns that a table over these rows shows.
std::vector<const ReportColumn*> TableColumns(const Report& report, const Rows& rows, std::span<const size_t> panel);

// The panel's summary: the columns it shows, and a row of each group, the first that did not
// fail where there is one. Nothing where the report has none.
struct SummaryTable {
  std::vector<const ReportColumn*> columns;
  std::vector<size_t> rows;
};
SummaryTable Summarize(const Report& report, const Rows& rows, std::span<const size_t> panel);

// The report's column of that name, else nullptr.
const ReportColumn* FindColumn(const Report& report, std::string_view name);

// Whether it says how long something took, or what follows from that. By its style, unit and name; of no prediction.
bool IsOfTime(const ReportColumn& column);

// Stands at a figure of times that others disturbed.
inline constexpr std::string_view kDisturbedMark = "\xE2\x80\xA0";

// A value for people; an en dash where there is none.
std::string FormatValue(ValueStyle style, const Cell& cell);

// A row's value of a column, with half of its interval where NAME_low and NAME_high say one: "2.47 × ± 0.31", and a
// mark where others disturbed it.
std::string FormatFigure(const ReportColumn& column, const Rows& rows, size_t row);

// The value inside a sentence: with its unit.
std::string FormatInSentence(const ReportColumn& column, const Cell& cell);

// The panel in words: the report's sentences that can be said of these rows. Figures that were not measured are marked.
std::vector<std::string> Conclude(const Report& report, const Rows& rows, std::span<const size_t> panel);

}  // namespace ridgeline
