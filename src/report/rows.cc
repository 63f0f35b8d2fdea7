#include "report/rows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "report/changes.h"
#include "report/intervals.h"

namespace ridgeline::report {

namespace {

// Whether a row's figure repeats another column's, so that a table can omit it: the mean step if no step stalls, or the
// throughput of a GPU if it is the only one.
bool SaysNoMore(const Rows& rows, size_t row, std::string_view column) {
  const std::string_view other = column == "step_mean_ns"           ? "step_median_ns"
                                 : column == "tokens_per_s_per_gpu" ? "steady_tokens_per_s"
                                                                    : "";
  if (other.empty()) return false;
  constexpr double kTelling = 0.01;
  const std::optional<double> value = rows.Number(row, column);
  const std::optional<double> known = rows.Number(row, other);
  return !value || !known || std::abs(*value - *known) < kTelling * *known;
}

// The columns that a chart of each kind draws from.
void AddColumnsOf(const ChartBars& chart, std::vector<std::string>& wanted) {
  for (const ChartBar& bar : chart.bars) {
    for (const ChartPart& part : bar.stack) wanted.push_back(part.column);
  }
}
void AddColumnsOf(const ChartLines& chart, std::vector<std::string>& wanted) {
  for (const std::string& name : {chart.by, chart.series, chart.x, chart.y, chart.x_label, chart.marks}) {
    if (!name.empty()) wanted.push_back(name);
  }
}
void AddColumnsOf(const ChartIntervals& chart, std::vector<std::string>& wanted) { wanted.push_back(chart.value); }
void AddColumnsOf(const ChartCells& chart, std::vector<std::string>& wanted) {
  wanted.insert(wanted.end(), {chart.x, chart.y, chart.value});
}
void AddColumnsOf(const ChartScatter& chart, std::vector<std::string>& wanted) {
  wanted.insert(wanted.end(), {chart.by, chart.x, chart.y});
  if (!chart.through.empty()) wanted.push_back(chart.through);
}

void AddWanted(const Sentence& sentence, std::vector<std::string>& wanted) {
  for (const Sentence::Piece& piece : sentence.pieces) {
    if (!piece.pick.empty()) wanted.push_back(piece.column);
  }
  for (const auto& [name, pick] : sentence.picks) {
    for (const auto& [column, texts] : pick.where) wanted.push_back(column);
    for (const std::string& column : {pick.max, pick.min}) {
      if (!column.empty()) wanted.push_back(column);
    }
  }
  for (const Sentence& other : sentence.otherwise) AddWanted(other, wanted);
}

std::string_view LastLine(std::string_view text) {
  const size_t end = text.find_last_not_of(" \t\r\n");
  if (end == std::string_view::npos) return {};
  text = text.substr(0, end + 1);
  return text.substr(text.find_last_of('\n') + 1);  // npos + 1 is 0
}

}  // namespace

Rows::Rows(const Report& report, Table table) : report_(report), table_(std::move(table)) {
  AddIntervals(report_, table_);
  AddChanges(report_, table_);
  for (size_t c = 0; c < table_.columns.size(); ++c) index_.emplace(table_.columns[c], c);
  std::set<int64_t> measured;
  for (size_t row = 0; row < size(); ++row) {
    const auto* result = std::get_if<int64_t>(&At(row, "result"));
    const std::string provenance = Text(row, report_columns::kProvenance);
    if (result == nullptr || Failed(row) || provenance == "predicted" || provenance == "published") continue;
    measured.insert(*result);
    if (DisturbedShare(row)) disturbed_.insert(*result);
  }
  all_are_disturbed_ = measured.size() > 1 && disturbed_.size() == measured.size();
  std::vector<std::string> wanted;
  for (const std::string_view name :
       {report_columns::kPanel, report_columns::kFailure, report_columns::kProvenance, report_columns::kEmulated,
        report_columns::kEnvironment, report_columns::kCommand}) {
    wanted.emplace_back(name);
  }
  for (const ReportColumn& column : report.columns) wanted.push_back(column.name);
  for (const ReportChart& chart : report.charts) {
    for (const std::string& name : {chart.label, chart.cluster, chart.wanted}) {
      if (!name.empty()) wanted.push_back(name);
    }
    std::visit([&](const auto& kind) { AddColumnsOf(kind, wanted); }, chart.kind);
  }
  if (report.summary) wanted.push_back(report.summary->by);
  if (!report.rows.by.empty()) wanted.push_back(report.rows.by);
  for (const Sentence& sentence : report.conclusion) AddWanted(sentence, wanted);
  for (const std::string& name : wanted) {
    if (index_.contains(name)) continue;
    throw Error(ErrorKind::kInvalidInput,
                fmt::format("the report '{}' shows the column '{}', which its query.sql does not give{}", report.name,
                            name, DidYouMean(name, table_.columns)),
                "docs/reports.md lists the columns that every query must give");
  }
}

const Cell& Rows::At(size_t row, std::string_view column) const {
  static const Cell kNothing;
  const auto it = index_.find(column);
  if (it == index_.end() || it->second >= table_.rows[row].size()) return kNothing;
  return table_.rows[row][it->second];
}

std::optional<double> Rows::Number(size_t row, std::string_view column) const {
  const Cell& cell = At(row, column);
  double value = NAN;
  if (const auto* integer = std::get_if<int64_t>(&cell)) value = static_cast<double>(*integer);
  if (const auto* number = std::get_if<double>(&cell)) value = *number;
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::vector<double> Rows::Series(size_t row, std::string_view column) const {
  const std::string text = Text(row, column);
  if (text.empty()) return {};
  const auto fail = [&] {
    return Error(ErrorKind::kInvalidInput,
                 fmt::format("the report '{}' draws the column '{}' as a series, but it holds '{}'", report_.name,
                             column, text.substr(0, 40)),
                 "a series is a JSON array of numbers, one a step");
  };
  const Json json = ParseJson(text, "a series of the report");
  if (!json.is_array()) throw fail();
  std::vector<double> series;
  series.reserve(json.size());
  for (const Json& value : json) {
    if (!value.is_number() && !value.is_null()) throw fail();
    series.push_back(value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN());
  }
  return series;
}

bool Rows::Disturbed(size_t row, const ReportColumn& column) const {
  if (disturbed_.empty() || !IsOfTime(column)) return false;
  const auto is_disturbed = [&](std::string_view name) {
    const auto* result = std::get_if<int64_t>(&At(row, name));
    return result != nullptr && disturbed_.contains(*result);
  };
  return is_disturbed("result") || std::any_of(column.steps_of.begin(), column.steps_of.end(), is_disturbed);
}

std::string Rows::Counted(size_t count) const { return CountOf(count, report_.rows.called); }

Table Rows::Shown() && {
  Table shown;
  std::vector<size_t> from;
  for (const ReportColumn& column : report_.columns) {
    if (column.hide == ReportColumn::Hide::kEverywhere) continue;
    shown.columns.push_back(column.name);
    from.push_back(index_.at(column.name));
  }
  shown.rows.reserve(table_.rows.size());
  for (auto& row : table_.rows) {
    auto& cells = shown.rows.emplace_back();
    cells.reserve(from.size());
    for (const size_t c : from) cells.push_back(c < row.size() ? std::move(row[c]) : Cell{});
    row = {};
  }
  return shown;
}

std::vector<Panel> MakePanels(const Rows& rows) {
  std::vector<Panel> panels;
  std::unordered_map<std::string, size_t> index;
  for (size_t row = 0; row < rows.size(); ++row) {
    std::string title = rows.Text(row, report_columns::kPanel);
    const auto [it, is_new] = index.emplace(title, panels.size());
    if (is_new) panels.push_back({std::move(title), {}});
    panels[it->second].rows.push_back(row);
  }
  return panels;
}

ShownFacts EnvironmentFacts(const Rows& rows, size_t row) {
  ShownFacts facts;
  const std::string text = rows.Text(row, report_columns::kEnvironment);
  if (text.empty()) return facts;
  const Json json = ParseJson(text, "an environment in the store");
  if (!json.is_object()) throw Error(ErrorKind::kInvalidInput, "an environment in the store is not a mapping");
  for (const auto& [key, value] : json.items()) {
    facts[key] = value.is_string() ? value.get<std::string>() : DumpJson(value);
  }
  return facts;
}

std::vector<Environment> DistinctEnvironments(const Rows& rows) {
  std::vector<Environment> environments;
  std::unordered_map<std::string, size_t> by_text;
  for (size_t row = 0; row < rows.size(); ++row) {
    const auto* text = std::get_if<std::string>(&rows.At(row, report_columns::kEnvironment));
    if (text == nullptr || text->empty() || *text == "{}") continue;
    const auto [it, is_new] = by_text.emplace(*text, environments.size());
    if (is_new) {
      Environment& environment = environments.emplace_back();
      environment.facts = EnvironmentFacts(rows, row);
      environment.command = rows.Text(row, report_columns::kCommand);
    }
    ++environments[it->second].runs;
  }
  return environments;
}

std::vector<const ReportColumn*> TableColumns(const Report& report, const Rows& rows, std::span<const size_t> panel) {
  std::vector<const ReportColumn*> columns;
  for (const ReportColumn& column : report.columns) {
    const auto all = [&](const auto& holds) { return std::all_of(panel.begin(), panel.end(), holds); };
    bool hidden = column.hide == ReportColumn::Hide::kInTables || column.hide == ReportColumn::Hide::kEverywhere ||
                  column.style == ValueStyle::kSeries;
    if (column.hide == ReportColumn::Hide::kConstant) {
      std::string value;
      hidden = all([&](size_t row) {
        const std::string text = rows.Text(row, column.name);
        if (value.empty()) value = text;
        return text.empty() || text == value;
      });
    } else if (column.hide == ReportColumn::Hide::kEmpty) {
      hidden = all([&](size_t row) {
        const Cell& cell = rows.At(row, column.name);
        return CellText(cell).empty() || rows.Number(row, column.name) == 0;
      });
    }
    hidden = hidden || all([&](size_t row) { return SaysNoMore(rows, row, column.name); });
    if (!hidden) columns.push_back(&column);
  }
  static const ReportColumn kDiffers = [] {
    ReportColumn column;
    column.name = report_columns::kDiffers;
    column.label = "Differs in";
    column.help = "What differs between this run and others of this table.";
    return column;
  }();
  const auto differs = [&](size_t row) { return !rows.Text(row, report_columns::kDiffers).empty(); };
  if (std::any_of(panel.begin(), panel.end(), differs)) columns.push_back(&kDiffers);
  return columns;
}

SummaryTable Summarize(const Report& report, const Rows& rows, std::span<const size_t> panel) {
  SummaryTable summary;
  if (!report.summary) return summary;
  for (const std::string& name : report.summary->columns) summary.columns.push_back(FindColumn(report, name));
  std::map<std::string, size_t> places;
  for (const size_t row : panel) {
    const auto [it, is_new] = places.emplace(rows.Text(row, report.summary->by), summary.rows.size());
    if (is_new) {
      summary.rows.push_back(row);
    } else if (size_t& shown = summary.rows[it->second]; rows.Failed(shown) && !rows.Failed(row)) {
      shown = row;
    }
  }
  return summary;
}

const ReportColumn* FindColumn(const Report& report, std::string_view name) {
  const auto it = std::find_if(report.columns.begin(), report.columns.end(),
                               [&](const ReportColumn& column) { return column.name == name; });
  return it == report.columns.end() ? nullptr : &*it;
}

bool IsOfTime(const ReportColumn& column) {
  const std::string& name = column.name;
  if (name.starts_with("predicted_")) return false;
  return column.style == ValueStyle::kDuration || column.style == ValueStyle::kFactor || column.unit == "tokens/s" ||
         !column.steps_of.empty() || name.starts_with("step_") || name.starts_with("steady_") ||
         name.starts_with("cold_") || name.starts_with("mfu") || name.starts_with("tflops_per_gpu") ||
         name.starts_with("tokens_per_s");
}

std::string FormatValue(ValueStyle style, const Cell& cell) {
  if (std::holds_alternative<std::monostate>(cell)) return "\xE2\x80\x93";
  if (style == ValueStyle::kLog) return std::string(LastLine(CellText(cell)));
  if (std::holds_alternative<std::string>(cell)) return std::get<std::string>(cell);
  const auto* integer = std::get_if<int64_t>(&cell);
  const double value = integer != nullptr ? static_cast<double>(*integer) : std::get<double>(cell);
  if (!std::isfinite(value)) return CellText(cell);
  // A larger number of nanoseconds or bytes does not fit an int64_t.
  const auto whole = static_cast<int64_t>(std::clamp(value, -9e18, 9e18));
  const auto percent = [](double v, bool sign) {
    // For 953 %, tenths are of no use.
    std::string text = fmt::format("{:.{}f}\xC2\xA0%", std::abs(v), std::abs(v) < 99.95 ? 1 : 0);
    const bool zero = text.starts_with("0.0");
    if (v < 0 && !zero) return "\xE2\x88\x92" + text;
    return sign && !zero ? "+" + text : text;
  };
  switch (style) {
    case ValueStyle::kCount:
      return FormatCount(value);
    case ValueStyle::kBytes:
      return FormatBytes(whole);
    case ValueStyle::kDuration:
      return FormatDuration(whole);
    case ValueStyle::kFraction:
      return percent(100 * value, false);
    case ValueStyle::kPercent:
      return percent(value, false);
    case ValueStyle::kSignedPercent:
      return percent(value, true);
    case ValueStyle::kFactor:
      return fmt::format("{:.2f}\xC2\xA0\xC3\x97", value);
    case ValueStyle::kFlag:
      return value == 0 ? "no" : "yes";
    case ValueStyle::kNumber: {
      const double size = std::abs(value);
      // Four digits, with as many places for all values of a column of about the same size: 2.990 below 3.001. No
      // places for counts.
      const int places = size < 1 ? 4 : size < 10 ? 3 : size < 100 ? 2 : 1;
      const bool counted = size == std::floor(size) && size >= 1;
      const std::string text =
          size < 1000 && !counted ? fmt::format("{:.{}f}", size, places) : fmt::format("{:.4g}", size);
      return value < 0 && text != "0.0000" ? "\xE2\x88\x92" + text : text;
    }
    case ValueStyle::kText:
    case ValueStyle::kInteger:
    case ValueStyle::kLog:
    case ValueStyle::kSeries:
      break;
  }
  return CellText(cell);
}

std::string FormatFigure(const ReportColumn& column, const Rows& rows, size_t row) {
  std::string text = FormatValue(column.style, rows.At(row, column.name));
  // A share of a peak names the peak.
  if (const std::optional<double> peak = rows.Number(row, "peak_tflops_per_gpu"); peak && column.name == "mfu") {
    text += " of " + FormatValue(ValueStyle::kNumber, *peak);
  }
  const bool has_value = !std::holds_alternative<std::monostate>(rows.At(row, column.name));
  const std::string mark =
      has_value && rows.MarksAsDisturbed(row, column) ? "\xC2\xA0" + std::string(kDisturbedMark) : std::string();
  const std::optional<double> low = rows.Number(row, LowColumn(column.name));
  const std::optional<double> high = rows.Number(row, HighColumn(column.name));
  if (!low || !high) return text + mark;
  // The half need not repeat the value's sign, or that it is a factor.
  const double half = (*high - *low) / 2;
  const std::string written = column.style == ValueStyle::kSignedPercent ? FormatValue(ValueStyle::kPercent, half)
                              : column.style == ValueStyle::kFactor      ? fmt::format("{:.2f}", half)
                                                                         : FormatValue(column.style, half);
  return text + " \xC2\xB1\xC2\xA0" + written + mark;
}

std::string FormatInSentence(const ReportColumn& column, const Cell& cell) {
  const std::string text = FormatValue(column.style, cell);
  return column.unit.empty() ? text : text + " " + column.unit;
}

}  // namespace ridgeline::report
