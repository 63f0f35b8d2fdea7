// A report: a folder reports/NAME, rendered as a page, a table or a document. query.sql queries the store, and
// report.yaml describes the presentation of the answer. docs/reports.md describes the files. The code here knows kinds
// of charts and columns, but no report by name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/table.h"

namespace ridgeline::store {
class Store;
}  // namespace ridgeline::store

namespace ridgeline::report {

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
  kLog,            // text of many lines: a page shows the last line and unfolds all; a document has the last
  kSeries,         // a JSON array with one number per step: for charts, CSV and JSON; no table has it
};

struct ReportColumn {
  // Where a column is left out. kConstant (the same in every row that has a value) and kEmpty (no value but zeros)
  // refer to a panel's table. CSV and JSON have every column but those that only sentences use.
  enum class Hide { kNever, kConstant, kEmpty, kInTables, kEverywhere };

  std::string name;  // as in the query's answer, in CSV and in JSON: with its unit
  std::string label;
  std::string group;  // neighbours with the same one share a heading
  std::string unit;   // shown in headings: "tokens/s"; the same in all of a group
  std::string help;   // one sentence
  ValueStyle style = ValueStyle::kText;
  Hide hide = Hide::kNever;
  bool key = false;  // stays if a screen has no room for every column; if no column is key, all stay
  // The columns with the results whose step times give the figure: for a throughput its own, for a comparison also the
  // reference's. If it is not empty, the report adds the figure's interval, as the columns of report/intervals.h.
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

// A line for each text of a column, over steps or over another column. Over steps: the mean of its runs' series, and
// the band of their range; a failed run has its own line, up to its end. Over a column: through the runs' figures, with
// a cross for a failed run; runs that share a place are shown as their mean and range.
struct ChartLines {
  std::string by;
  std::string series;   // over steps; else empty
  int64_t points = 0;   // for a series: the most points, each the mean of neighbouring steps
  std::string along;    // what a series runs along instead of steps, counted from 0: "rank"; may be empty
  std::string x;        // the column of numbers for the x axis; empty: steps
  std::string y;        // the column of the figure
  std::string x_label;  // the column of labels below x's ticks instead of its numbers; may be empty
  std::string marks;    // the column of words over a vertical line at x, if a row has some; may be empty
  bool log_x = false;
  bool log = false;       // y
  bool from_zero = true;  // for y, over a column
};

// Which rows form a history, oldest first by `order`, and what distinguishes builds in it. Adds where the level of step
// times changed (report/changes.h).
struct ReportChanges {
  std::string of;
  std::string order;
  std::string at;
};

// What a row is, if it is no run, and by what the rows are counted: "8 findings in 2 panels: 5 PASS, 3 REGRESSED."
struct ReportRows {
  std::string called = "run";
  std::string by;  // a column; empty: counts successes and failures
};

// One row per run: its figure, over its interval.
struct ChartIntervals {
  std::string value;         // the column of the figure
  std::optional<double> at;  // a line across all rows at the value of no difference, such as 1 for a ratio
};

// One cell for each pair of values of two columns.
struct ChartCells {
  std::string x;  // columns of numbers, which grow to the right and to the top
  std::string y;
  std::string value;
};

// One mark per run, where two of its figures meet.
struct ChartScatter {
  std::string by;  // runs with the same text have the same marks
  std::string x;   // the figures' columns; each has its interval if NAME_low and NAME_high are in the answer
  std::string y;
  std::string through;  // the column of a flag: a line connects the runs that have it; may be empty
  bool log_x = false;
  bool log = false;  // y
};

// One slot per run, with its bars.
struct ChartBars {
  std::vector<ChartBar> bars;
};

struct ReportChart {
  std::string id;
  std::string title;
  std::string note;  // below the title: describes the bars or lines
  std::string axis;
  ValueStyle style = ValueStyle::kCount;
  std::string label;    // the column that names a run, such as under its bars
  std::string cluster;  // the column that groups neighbours; may be empty
  std::string wanted;   // the column of what a failed run needed; may be empty
  std::variant<ChartBars, ChartLines, ChartIntervals, ChartCells, ChartScatter> kind;

  // REQUIRES: the chart is of this kind.
  template <typename Kind>
  const Kind& as() const {
    return std::get<Kind>(kind);
  }
};

// A table with one row for each text of a column, above the table of the runs. It has the columns that are the same in
// all runs of a group.
struct ReportSummary {
  std::string by;
  std::vector<std::string> columns;
};

// Picks one row of a panel: of those that meet every condition, the one with the largest (smallest) value, else the
// first.
struct RowPick {
  std::map<std::string, std::vector<std::string>> where;  // column -> texts, of which it must have one
  std::string max;
  std::string min;
};

// Words that contain {pick.column}. Used only if every pick finds a row and every figure has a value; otherwise
// `otherwise` is used.
struct Sentence {
  struct Piece {
    std::string words;  // then, unless `pick` is empty, that row's value of `column`
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
  std::string measured;  // when and where, in a sentence: not from the folder, but from the answer; may be empty
  std::string empty;     // shown if there are no rows; empty: the sentence that there are no runs yet
  ReportRows rows;
  std::vector<std::string> notes;  // how to read it, one paragraph each
  std::vector<ReportColumn> columns;
  std::vector<ReportChart> charts;
  std::optional<ReportSummary> summary;
  std::optional<ReportChanges> changes;
  std::vector<Sentence> conclusion;
  std::vector<std::string> tells;  // fields of a run that its labels already show; see AddDifferences
  std::string sql;
};

// Columns that every report's query must give, beside those that it names itself.
namespace report_columns {
inline constexpr std::string_view kPanel = "panel";            // rows with the same text form a panel
inline constexpr std::string_view kFailure = "failure";        // how a run failed, in words; NULL if it did not
inline constexpr std::string_view kProvenance = "provenance";  // measured, predicted or published
inline constexpr std::string_view kEmulated = "emulated";      // 1 or 0
inline constexpr std::string_view kTrainer = "trainer";        // with kVersion, what measured; or NULL
inline constexpr std::string_view kVersion = "version";
inline constexpr std::string_view kEnvironment = "environment";  // JSON object of texts, or NULL
inline constexpr std::string_view kCommand = "command";          // what was run, or NULL
// Not from the query: the share of its cores that others used, if that disturbed a run's times (run/disturbance.h).
inline constexpr std::string_view kDisturbed = "disturbed_by_others";
inline constexpr std::string_view kDiffers = "differs";  // not from the query: what AddDifferences found
}  // namespace report_columns

// The folders with reports, one folder for each report: the user's own folders, then that of the user's configuration,
// then the installed one. A name means the first that is found.
std::vector<std::filesystem::path> ReportFolders(std::vector<std::filesystem::path> own);

// The folders of all reports that a name can mean, sorted by name. A missing folder has none.
std::vector<std::filesystem::path> FindReports(const std::vector<std::filesystem::path>& folders);

// Throws Error(kUsage) with the nearest name for an unknown name, and Error(kInvalidInput) for an invalid folder.
Report LoadReport(const std::string& name, const std::vector<std::filesystem::path>& folders);
// The same from a folder with any name.
Report LoadReportFolder(const std::filesystem::path& folder);

enum class ReportFormat { kHtml, kCsv, kMarkdown, kJson, kText };

// "html", "csv", "md", "json" or "text". Throws Error(kUsage) for any other.
ReportFormat ReportFormatNamed(std::string_view name);

struct RenderOptions {
  std::string sweep;  // only this sweep's points; empty: every run in the store
  ReportFormat format = ReportFormat::kMarkdown;
  bool all_measurements = false;  // all of them; else the newest of each point and setup
  std::string campaign = {};      // only measurements for this campaign; empty: for any
  std::string input = {};         // a JSON document that the query reads as :input; empty: none
};

struct RenderedReport {
  std::string bytes;
  std::string counts;                // in a sentence
  std::vector<std::string> answers;  // one per panel of a page for people, if it has one
  int64_t runs = 0;
  int64_t failed = 0;
};

// Throws Error(kUsage) for an unknown sweep or campaign, and Error(kInvalidInput) if the query's answer lacks a column.
RenderedReport Render(const Report& report, store::Store& store, const RenderOptions& options);

// The same for a given answer.
RenderedReport RenderRows(const Report& report, Table rows, const RenderOptions& options);

}  // namespace ridgeline::report
