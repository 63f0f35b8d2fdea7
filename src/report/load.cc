// Reads report.yaml into a Report. Finds every fault, with its line and column.
#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/text.h"
#include "report/intervals.h"
#include "report/report.h"
#include "report/rows.h"
#include "yaml/entries.h"
#include "yaml/yaml.h"

namespace ridgeline::report {
namespace fs = std::filesystem;

namespace {

constexpr int64_t kReportVersion = 1;

constexpr std::pair<std::string_view, ValueStyle> kStyles[] = {
    {"text", ValueStyle::kText},         {"integer", ValueStyle::kInteger},
    {"count", ValueStyle::kCount},       {"bytes", ValueStyle::kBytes},
    {"duration", ValueStyle::kDuration}, {"fraction", ValueStyle::kFraction},
    {"percent", ValueStyle::kPercent},   {"signed_percent", ValueStyle::kSignedPercent},
    {"factor", ValueStyle::kFactor},     {"flag", ValueStyle::kFlag},
    {"number", ValueStyle::kNumber},     {"series", ValueStyle::kSeries},
    {"log", ValueStyle::kLog},
};

constexpr std::pair<std::string_view, ReportColumn::Hide> kHides[] = {
    {"never", ReportColumn::Hide::kNever},           {"in tables", ReportColumn::Hide::kInTables},
    {"everywhere", ReportColumn::Hide::kEverywhere}, {"constant", ReportColumn::Hide::kConstant},
    {"empty", ReportColumn::Hide::kEmpty},
};

constexpr std::pair<std::string_view, bool> kScales[] = {{"linear", false}, {"log", true}};
constexpr int64_t kDefaultPoints = 400;  // points of a line
constexpr int64_t kMostPoints = 100'000;

// One mapping of the file. Adds faults, with their places, and reads on: what is wrong reads as if it were missing. All
// requested keys are known; Done() reports the others.
class Mapping {
 public:
  Mapping(const yaml::YamlNode& node, std::vector<yaml::Fault>& faults)
      : node_(node), faults_(faults), faults_before_(faults.size()) {
    if (!is_map()) Fail("this must be a mapping, not " + yaml::Describe(node));
  }

  // Whether nothing in it is wrong so far. Otherwise, what its values need of each other is not checked.
  bool is_sound() const { return faults_.size() == faults_before_; }

  void Fail(std::string message) const { Fail(node_, std::move(message)); }
  void Fail(const yaml::YamlNode& at, std::string message) const { faults_.push_back({at.place, std::move(message)}); }

  std::string Text(const char* key, bool required = false) {
    const yaml::YamlNode* value = Find(key, required);
    if (value == nullptr) return {};
    if (value->scalar.is_string()) return value->scalar.get<std::string>();
    Fail(*value, fmt::format("'{}' must be text", key));
    return {};
  }

  bool Flag(const char* key, bool otherwise = false) {
    const yaml::YamlNode* value = Find(key, false);
    if (value == nullptr) return otherwise;
    if (value->scalar.is_boolean()) return value->scalar.get<bool>();
    Fail(*value, fmt::format("'{}' must be true or false", key));
    return otherwise;
  }

  int64_t Count(const char* key, int64_t otherwise) {
    const yaml::YamlNode* value = Find(key, false);
    if (value == nullptr) return otherwise;
    const Json& number = value->scalar;
    if (number.is_number_integer() && number >= 1 && number <= kMostPoints) return number.get<int64_t>();
    Fail(*value, fmt::format("'{}' must be an integer between 1 and {}", key, kMostPoints));
    return otherwise;
  }

  std::optional<double> Number(const char* key) {
    const yaml::YamlNode* value = Find(key, false);
    if (value == nullptr) return std::nullopt;
    if (value->scalar.is_number()) return value->scalar.get<double>();
    Fail(*value, fmt::format("'{}' is a number", key));
    return std::nullopt;
  }

  template <typename T, size_t N>
  T Choice(const char* key, const std::pair<std::string_view, T> (&choices)[N], T otherwise) {
    const std::string text = Text(key);
    if (text.empty()) return otherwise;
    std::vector<std::string> names;
    for (const auto& [name, value] : choices) {
      if (name == text) return value;
      names.emplace_back(name);
    }
    Fail(*Find(key, false),
         fmt::format("unknown {} '{}'{}; there are {}", key, text, DidYouMean(text, names), Join(names, ", ")));
    return otherwise;
  }

  // The items of a list; none if the key is missing.
  std::vector<const yaml::YamlNode*> Items(const char* key, bool required = false) {
    std::vector<const yaml::YamlNode*> items;
    const yaml::YamlNode* value = Find(key, required);
    if (value == nullptr) return items;
    if (value->kind != yaml::YamlNode::Kind::kList) Fail(*value, fmt::format("'{}' must be a list", key));
    for (const yaml::YamlNode& item : value->items) items.push_back(&item);
    return items;
  }

  // The texts of a list; none if the key is missing. `of`: what they are.
  std::vector<std::string> Texts(const char* key, std::string_view of, bool required = false) {
    std::vector<std::string> texts;
    for (const yaml::YamlNode* item : Items(key, required)) {
      if (item->scalar.is_string()) {
        texts.push_back(item->scalar.get<std::string>());
      } else {
        Fail(*item, fmt::format("'{}' must be a list of {}", key, of));
      }
    }
    return texts;
  }

  // The entries of a mapping; none if the key is missing.
  std::vector<yaml::Entry> EntriesOf(const char* key) {
    const yaml::YamlNode* value = Find(key, false);
    if (value == nullptr) return {};
    if (value->kind != yaml::YamlNode::Kind::kMap) Fail(*value, fmt::format("'{}' must be a mapping", key));
    return yaml::Entries(*value, "key", {}, faults_);
  }

  // Loads the mapping at a key. Returns nothing if the key is missing.
  template <typename Load>
  auto At(const char* key, Load load) -> std::optional<decltype(load(*this))> {
    const yaml::YamlNode* value = Find(key, false);
    return value == nullptr ? std::nullopt : std::optional(load(Mapping(*value, faults_)));
  }

  // Loads each mapping of a list.
  template <typename Load>
  auto Each(const char* key, Load load, bool required = false) -> std::vector<decltype(load(*this))> {
    std::vector<decltype(load(*this))> all;
    for (const yaml::YamlNode* item : Items(key, required)) all.push_back(load(Mapping(*item, faults_)));
    return all;
  }

  // For a mapping below this one.
  Mapping Below(const yaml::YamlNode& node) const { return {node, faults_}; }

  // Null counts as missing.
  const yaml::YamlNode* Find(const char* key, bool required) {
    known_.emplace_back(key);
    for (const auto& [name, value] : node_.entries) {
      if (name.scalar == key && (value.kind != yaml::YamlNode::Kind::kScalar || !value.scalar.is_null())) return &value;
    }
    if (required && is_map()) Fail(fmt::format("'{}' is missing", key));
    return nullptr;
  }

  void Done() const { yaml::Entries(node_, "key", known_, faults_); }

 private:
  bool is_map() const { return node_.kind == yaml::YamlNode::Kind::kMap; }

  const yaml::YamlNode& node_;
  std::vector<yaml::Fault>& faults_;
  size_t faults_before_;
  yaml::Names known_;
};

ReportColumn LoadColumn(Mapping map) {
  ReportColumn column;
  column.name = map.Text("name", true);
  column.label = map.Text("label", true);
  column.group = map.Text("group");
  column.unit = map.Text("unit");
  column.help = map.Text("help");
  column.style = map.Choice("style", kStyles, ValueStyle::kText);
  column.hide = map.Choice("hide", kHides, ReportColumn::Hide::kNever);
  column.key = map.Flag("key");
  column.steps_of = map.Texts("steps_of", "columns' names");
  if (column.steps_of.size() > 2) map.Fail("'steps_of' names one column with results, or two that are compared");
  map.Done();
  return column;
}

ChartPart LoadPart(Mapping map) {
  ChartPart part{map.Text("label", true), map.Text("column", true)};
  map.Done();
  return part;
}

ChartBar LoadBar(Mapping map) {
  ChartBar bar;
  bar.label = map.Text("label", true);
  bar.light = map.Flag("light");
  const std::string column = map.Text("column");
  bar.stack = map.Each("stack", LoadPart);
  if (map.is_sound() && column.empty() == bar.stack.empty()) map.Fail("a bar has a 'column' or a 'stack'");
  if (!column.empty()) bar.stack.push_back({bar.label, column});
  map.Done();
  return bar;
}

ChartLines LoadLines(Mapping map) {
  ChartLines lines;
  lines.by = map.Text("by", true);
  lines.series = map.Text("series");
  lines.points = map.Count("points", kDefaultPoints);
  lines.x = map.Text("x");
  lines.y = map.Text("y");
  lines.log_x = map.Choice("x_scale", kScales, false);
  lines.log = map.Choice("scale", kScales, false);
  lines.along = map.Text("along");
  if (map.is_sound() && lines.series.empty() && !lines.along.empty()) map.Fail("'along' belongs to a 'series'");
  lines.x_label = map.Text("x_label");
  lines.marks = map.Text("marks");
  lines.from_zero = map.Flag("from_zero", true);
  if (map.is_sound() && lines.x.empty() && !(lines.x_label + lines.marks).empty()) {
    map.Fail("'x_label' and 'marks' belong to lines over a column 'x'");
  }
  if (map.is_sound() && (lines.x.empty() != lines.y.empty() || lines.series.empty() == lines.x.empty())) {
    map.Fail("lines have a 'series', over steps, or a column 'x' and a column 'y'");
  }
  map.Done();
  return lines;
}

ChartIntervals LoadIntervals(Mapping map) {
  ChartIntervals intervals;
  intervals.value = map.Text("value", true);
  intervals.at = map.Number("at");
  map.Done();
  return intervals;
}

ChartCells LoadCells(Mapping map) {
  ChartCells cells{map.Text("x", true), map.Text("y", true), map.Text("value", true)};
  map.Done();
  return cells;
}

ChartScatter LoadScatter(Mapping map) {
  ChartScatter scatter{map.Text("by", true), map.Text("x", true), map.Text("y", true), map.Text("through")};
  scatter.log_x = map.Choice("x_scale", kScales, false);
  scatter.log = map.Choice("scale", kScales, false);
  map.Done();
  return scatter;
}

ReportChanges LoadChanges(Mapping map) {
  ReportChanges changes{map.Text("of", true), map.Text("order", true), map.Text("at", true)};
  map.Done();
  return changes;
}

ReportRows LoadRows(Mapping map) {
  ReportRows rows{map.Text("called", true), map.Text("by")};
  map.Done();
  return rows;
}

ReportSummary LoadSummary(Mapping map) {
  ReportSummary summary;
  summary.by = map.Text("by", true);
  summary.columns = map.Texts("columns", "columns' names", true);
  map.Done();
  return summary;
}

ReportChart LoadChart(Mapping map) {
  ReportChart chart;
  chart.id = map.Text("id", true);
  if (chart.id.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") != std::string::npos) {
    map.Fail("'id' may hold lowercase letters, digits and dashes");
  }
  chart.title = map.Text("title", true);
  chart.note = map.Text("note");
  chart.axis = map.Text("axis");
  chart.style = map.Choice("style", kStyles, ValueStyle::kCount);
  chart.label = map.Text("label", true);
  chart.cluster = map.Text("cluster");
  chart.wanted = map.Text("wanted");
  int kinds = 0;
  if (ChartBars bars{map.Each("bars", LoadBar)}; !bars.bars.empty()) {
    ++kinds;
    chart.kind = std::move(bars);
  }
  const auto load = [&](const char* key, const auto& loader) {
    auto loaded = map.At(key, loader);
    if (!loaded) return;
    ++kinds;
    chart.kind = *std::move(loaded);
  };
  load("lines", LoadLines);
  load("intervals", LoadIntervals);
  load("cells", LoadCells);
  load("scatter", LoadScatter);
  if (map.is_sound() && kinds != 1) map.Fail("a chart has 'bars', 'lines', 'intervals', 'cells' or 'scatter'");
  map.Done();
  return chart;
}

RowPick LoadPick(Mapping map) {
  RowPick pick;
  for (const auto& [column, values] : map.EntriesOf("where")) {
    const bool is_list = values->kind == yaml::YamlNode::Kind::kList;
    for (const yaml::YamlNode& value : is_list ? std::span(values->items) : std::span(values, 1)) {
      if (value.kind != yaml::YamlNode::Kind::kScalar) {
        map.Fail(value, "'where' gives a column a value or a list of values");
        continue;
      }
      const Json& scalar = value.scalar;
      pick.where[column].push_back(scalar.is_string() ? scalar.get<std::string>() : DumpJson(scalar));
    }
  }
  pick.max = map.Text("max");
  pick.min = map.Text("min");
  if (!pick.max.empty() && !pick.min.empty()) map.Fail("a pick has 'max' or 'min', not both");
  map.Done();
  return pick;
}

Sentence LoadSentence(Mapping map) {
  Sentence sentence;
  for (const auto& [name, pick] : map.EntriesOf("picks")) sentence.picks[name] = LoadPick(map.Below(*pick));
  const std::string text = map.Text("text", true);
  sentence.otherwise = map.Each("else", LoadSentence);
  map.Done();
  std::string_view rest = text;
  while (map.is_sound() && !rest.empty()) {
    const size_t open = std::min(rest.find('{'), rest.size());
    const size_t close = std::min(rest.find('}'), rest.size());
    Sentence::Piece piece{std::string(rest.substr(0, open)), {}, {}};
    if (open < rest.size()) {
      const std::string inside(rest.substr(open + 1, std::max(close, open + 1) - open - 1));
      const size_t dot = inside.find('.');
      piece.pick = inside.substr(0, dot);
      if (close <= open || close == rest.size() || dot == std::string::npos || !sentence.picks.contains(piece.pick)) {
        map.Fail("'text' has '{" + inside + "', but a figure is {pick.column} with one of the sentence's picks");
        break;
      }
      piece.column = inside.substr(dot + 1);
    }
    rest.remove_prefix(open == rest.size() ? open : close + 1);
    sentence.pieces.push_back(std::move(piece));
  }
  return sentence;
}

// Throws Fault if the file is of another version.
void RequireVersion(Mapping& map) {
  const yaml::YamlNode* version = map.Find("version", true);
  if (version == nullptr || version->scalar == kReportVersion) return;
  throw yaml::Fault{version->place,
                    fmt::format("version {}, but this program reads {}", yaml::Describe(*version), kReportVersion)};
}

Report LoadYaml(const yaml::YamlNode& root, std::vector<yaml::Fault>& faults) {
  Mapping map(root, faults);
  RequireVersion(map);
  Report report;
  report.title = map.Text("title", true);
  report.description = map.Text("description");
  report.empty = map.Text("empty");
  if (auto rows = map.At("rows", LoadRows)) report.rows = *std::move(rows);
  report.notes = map.Texts("notes", "texts");
  std::set<std::string> names;
  for (const yaml::YamlNode* item : map.Items("columns", true)) {
    const ReportColumn loaded = LoadColumn(map.Below(*item));
    std::vector<ReportColumn> columns = IntervalColumns(loaded);
    columns.insert(columns.begin(), loaded);
    for (ReportColumn& column : columns) {
      if (!column.name.empty() && !names.insert(column.name).second)
        map.Fail(*item, "the column '" + column.name + "' is given twice");
      report.columns.push_back(std::move(column));
    }
  }
  names.clear();
  for (const yaml::YamlNode* item : map.Items("charts")) {
    report.charts.push_back(LoadChart(map.Below(*item)));
    const std::string& id = report.charts.back().id;
    if (!id.empty() && !names.insert(id).second) map.Fail(*item, "the id '" + id + "' is given twice");
  }
  report.summary = map.At("summary", LoadSummary);
  for (const std::string& name : report.summary ? report.summary->columns : std::vector<std::string>()) {
    if (FindColumn(report, name) == nullptr) {
      map.Fail(*map.Find("summary", false), "summary: there is no column '" + name + "'");
    }
  }
  report.changes = map.At("changes", LoadChanges);
  report.tells = map.Texts("tells", "fields' names");
  report.conclusion = map.Each("conclusion", LoadSentence);
  map.Done();
  return report;
}

}  // namespace

Report LoadReportFolder(const fs::path& folder) {
  const fs::path file = folder / "report.yaml";
  const std::optional<std::string> text = ReadFileIfThere(file, yaml::YamlLimits().bytes + 1);
  if (!text) throw Error(ErrorKind::kInvalidInput, fmt::format("there is no file {}", file.string()));
  std::vector<yaml::Fault> faults;
  Report report;
  try {
    report = LoadYaml(yaml::ParseYaml(*text), faults);
  } catch (const yaml::Fault& fault) {
    faults = {fault};
  }
  if (!faults.empty()) yaml::ThrowFaults(file, std::move(faults), "docs/reports.md describes report.yaml");
  report.name = folder.filename().string();
  report.sql = ReadFile(folder / "query.sql");
  return report;
}

}  // namespace ridgeline::report
