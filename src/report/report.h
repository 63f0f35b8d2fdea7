// A report: a folder reports/NAME of data (query.sql asks the store, report.yaml says what the answer looks like)
// rendered as a page, a table or a document. docs/reports.md describes the files. The code here knows kinds of charts
// and columns, and no report by name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/table.h"

namespace ridgeline {

class Store;

// How a column's values are written for people.
enum class ValueStyle {
  kText,
  kInteger,
  kCount,          // "6.02K"
  kBytes,          // "15.5 GB"
  kDuration,       // nanoseconds: "850 ms"
  kFraction,       // 0.012: "1.2 %"
  kPercent,        // 12.3: "12.3 %"
  kSignedPercent,  // 12.3: "+12.3 %"
  kFactor,         // 7.94: "7.94 ×"
  kFlag,           // 0 or 1: "no", "yes"
  kNumber,         // 2.34561: "2.346"; 0.00012: "0.0001"
  kLog,            // text of many lines: a page shows the last, and unfolds all; a document has the last
  kSeries,         // a JSON array of numbers, one a step: for charts, CSV and JSON; no table has it
};

struct ReportColumn {
  // Where a column is left out. kConstant (the same in every row that has a value) and kEmpty (no value but zeros) ask
  // a panel's table; CSV and JSON have every column but those that only sentences use.
  enum class Hide { kNever, kConstant, kEmpty, kInTables, kEverywhere };

  std::string name;  // in the query's answer, and in CSV and JSON: with its unit
  std::string label;
  std::string group;  // neighbours with the same one share a heading
  std::string unit;   // shown in headings: "tokens/s"; the same in all of a group
  std::string help;   // one sentence
  ValueStyle style = ValueStyle::kText;
  Hide hide = Hide::kNever;
  bool key = false;  // stays where a screen has no room for every column; without any, all do
  // The columns with the results whose step times the figure comes from: of a throughput its own, of a comparison also
  // that compared with. Not empty: the report adds its interval, as the columns of report/intervals.h.
  std::vector<std::string> steps_of;
};

struct ChartPart {
  std::string label;
  std::string column;
};

struct ChartBar {
  std::string label;
  std::vector<ChartPart> stack;  // one part: a plain bar, whose label is the bar's
  bool light = false;
};

// A line for each text of a column, over steps or over another column. Over steps: the mean of its runs' series and the
// band that they span; a failed run has a line of its own, to where it ended. Over a column: through the runs' figures,
// with a cross where a run failed; runs that share a place are their mean and what they span.
struct ChartLines {
  std::string by;
  std::string series;   // over steps; else empty
  int64_t points = 0;   // of a series, at most, each the mean of neighbouring steps
  std::string along;    // what a series goes along in place of steps, counted from 0: "rank"; may be empty
  std::string x;        // the column of numbers that the lines go over; empty: steps
  std::string y;        // and the figure's
  std::string x_label;  // the column of what stands below x's ticks in place of its numbers; may be empty
  std::string marks;    // the column of words over a line upright at x, where a row has some; may be empty
  bool log_x = false;
  bool log = false;       // y
  bool from_zero = true;  // over a column: y
};

// What rows of one text are a history, the oldest first by `order`, and what of it tells builds apart: where the level
// of step times changed is added (report/changes.h).
struct ReportChanges {
  std::string of;
  std::string order;
  std::string at;
};

// What a row is, where it is no run, and what the rows are counted by: "8 findings in 2 panels: 5 PASS, 3 REGRESSED."
struct ReportRows {
  std::string called = "run";
  std::string by;  // a column; empty: by how many are ok, and how many failed
};

// A row a run: its figure, over its interval.
struct ChartIntervals {
  std::string value;         // the column of the figure
  std::optional<double> at;  // where nothing differs, such as 1 of a ratio: a line across all rows
};

// A cell for each pair of a column's values and another's.
struct ChartCells {
  std::string x;  // columns of numbers, which grow to the right and to the top
  std::string y;
  std::string value;
};

// A mark a run, where two of its figures meet.
struct ChartScatter {
  std::string by;  // runs with the same text look alike
  std::string x;   // the figures' columns; each has its interval where NAME_low and NAME_high are in the answer
  std::string y;
  std::string through;  // the column of a flag: a line goes through the runs that have it; may be empty
  bool log_x = false;
  bool log = false;  // y
};

// Bars, a slot a run, or one of the others.
struct ReportChart {
  std::string id;
  std::string title;
  std::string note;  // below the title: what the bars or lines are
  std::string axis;
  ValueStyle style = ValueStyle::kCount;
  std::string label;    // the column that names a run, such as under its bars
  std::string cluster;  // the column that gathers neighbours; may be empty
  std::string wanted;   // the column of what a failed run wanted; may be empty
  std::vector<ChartBar> bars;
  std::optional<ChartLines> lines;
  std::optional<ChartIntervals> intervals;
  std::optional<ChartCells> cells;
  std::optional<ChartScatter> scatter;
};

// A table with one row for each text of a column, above the table of the runs: of columns that are the same in all runs
// of a group.
struct ReportSummary {
  std::string by;
  std::vector<std::string> columns;
};

// Picks one row of a panel: of those that meet every condition, the one with the largest (smallest) value, else the
// first.
struct RowPick {
  std::map<std::string, std::vector<std::string>> where;  // column -> texts, one of which it must be
  std::string max;
  std::string min;
};

// Words with {pick.column} in them. Said only where every pick finds a row and every figure has a value; else what
// `otherwise` holds is.
struct Sentence {
  struct Piece {
    std::string words;  // then, where `pick` is not empty, that row's value of `column`
    std::string pick;
    std::string column;
  };
  std::map<std::string, RowPick> picks;
  std::vector<Piece> pieces;
  std::vector<Sentence> otherwise;
};

struct Report {
  std::string name;
  std::string title;
  std::string description;
  std::string measured;  // when and where, in a sentence: not the folder's, but of its answer; may be empty
  std::string empty;     // said where there are no rows; empty: that there are no runs yet
  ReportRows rows;
  std::vector<std::string> notes;  // how to read it, a paragraph each
  std::vector<ReportColumn> columns;
  std::vector<ReportChart> charts;
  std::optional<ReportSummary> summary;
  std::optional<ReportChanges> changes;
  std::vector<Sentence> conclusion;
  std::vector<std::string> tells;  // what of a run its labels say, by the names of fields: see AddDifferences
  std::string sql;
};

// Columns every report's query must give, beside those it names itself.
namespace report_columns {
inline constexpr std::string_view kPanel = "panel";            // rows with the same text form a panel
inline constexpr std::string_view kFailure = "failure";        // how a run failed, in words; NULL where it did not
inline constexpr std::string_view kProvenance = "provenance";  // measured, predicted or published
inline constexpr std::string_view kEmulated = "emulated";      // 1 or 0
inline constexpr std::string_view kTrainer = "trainer";        // who measured, and with kVersion which of it; or NULL
inline constexpr std::string_view kVersion = "version";
inline constexpr std::string_view kEnvironment = "environment";  // JSON object of texts, or NULL
inline constexpr std::string_view kCommand = "command";          // what was run, or NULL
// Not the query's: the share of its cores that others held, where that disturbed a run's times (run/disturbance.h).
inline constexpr std::string_view kDisturbed = "disturbed_by_others";
inline constexpr std::string_view kDiffers = "differs";  // not the query's: what AddDifferences found
}  // namespace report_columns

// Where reports are looked for, one a folder, each by its name: the folders of one's own, then that of the user's
// configuration, then what is installed. A name means the first that is found.
std::vector<std::filesystem::path> ReportFolders(std::vector<std::filesystem::path> own);

// The folders of all reports that a name can mean, sorted by name. A folder that does not exist has none.
std::vector<std::filesystem::path> FindReports(const std::vector<std::filesystem::path>& folders);

// Throws Error(kUsage) for a name that is none, with the nearest; Error(kInvalidInput) for a folder that is wrong.
Report LoadReport(const std::string& name, const std::vector<std::filesystem::path>& folders);
// The same from a folder, whatever its name.
Report LoadReportFolder(const std::filesystem::path& folder);

enum class ReportFormat { kHtml, kCsv, kMarkdown, kJson, kText };

// "html", "csv", "md", "json" or "text". Throws Error(kUsage) for any other.
ReportFormat ReportFormatNamed(std::string_view name);

struct RenderOptions {
  std::string sweep;  // only this sweep's points; empty: every run in the store
  ReportFormat format = ReportFormat::kMarkdown;
  bool all_measurements = false;  // each of them; else the newest of each point and setup
  std::string campaign = {};      // only what was measured for this one; empty: for any
  std::string input = {};         // a JSON document that the query reads as :input; empty: none
};

struct RenderedReport {
  std::string bytes;
  std::string counts;                // in a sentence
  std::vector<std::string> answers;  // one a panel that a page for people has, where it has one
  int64_t runs = 0;
  int64_t failed = 0;
};

// Throws Error(kUsage) for an unknown sweep or campaign, Error(kInvalidInput) where the query's answer lacks a column.
RenderedReport Render(const Report& report, Store& store, const RenderOptions& options);

// The same over an answer that is at hand.
RenderedReport RenderRows(const Report& report, Table rows, const RenderOptions& options);

}  // namespace ridgeline
