// Reads report.yaml into a Report. Every fault names the file and the path to the value in it.
#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/text.h"
#include "report/intervals.h"
#include "report/report.h"
#include "report/rows.h"
#include "yaml/yaml.h"

namespace ridgeline {
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

// One mapping of the file. All requested keys are known; Done() refuses the others.
class Mapping {
 public:
  Mapping(const Json& json, std::string where) : json_(json), where_(std::move(where)) {
    if (!json.is_object()) Fail("this must be a mapping");
  }

  [[noreturn]] void Fail(const std::string& what) const {
    throw Error(ErrorKind::kInvalidInput, where_ + ": " + what, "docs/reports.md describes report.yaml");
  }

  std::string Text(const char* key, bool required = false) {
    const Json* value = Find(key, required);
    if (value == nullptr) return {};
    if (!value->is_string()) Fail(fmt::format("'{}' must be text", key));
    return value->get<std::string>();
  }

  bool Flag(const char* key, bool otherwise = false) {
    const Json* value = Find(key, false);
    if (value == nullptr) return otherwise;
    if (!value->is_boolean()) Fail(fmt::format("'{}' must be true or false", key));
    return value->get<bool>();
  }

  int64_t Count(const char* key, int64_t otherwise) {
    const Json* value = Find(key, false);
    if (value == nullptr) return otherwise;
    if (!value->is_number_integer() || *value < 1 || *value > kMostPoints) {
      Fail(fmt::format("'{}' must be an integer between 1 and {}", key, kMostPoints));
    }
    return value->get<int64_t>();
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
    Fail(fmt::format("unknown {} '{}'{}; there are {}", key, text, DidYouMean(text, names), Join(names, ", ")));
  }

  std::string Where(const char* key) const { return where_ + ": " + key; }

  // The items of a list, each with its path; none if the key is missing.
  std::vector<std::pair<const Json*, std::string>> Items(const char* key, bool required = false) {
    std::vector<std::pair<const Json*, std::string>> items;
    const Json* value = Find(key, required);
    if (value == nullptr) return items;
    if (!value->is_array()) Fail(fmt::format("'{}' must be a list", key));
    for (size_t i = 0; i < value->size(); ++i) {
      items.emplace_back(&(*value)[i], fmt::format("{}: {}[{}]", where_, key, i));
    }
    return items;
  }

  // The texts of a list; none if the key is missing.
  std::vector<std::string> Texts(const char* key, bool required = false) {
    std::vector<std::string> texts;
    for (const auto& [json, where] : Items(key, required)) {
      if (!json->is_string()) Fail(fmt::format("'{}' must be a list of columns' names", key));
      texts.push_back(json->get<std::string>());
    }
    return texts;
  }

  // The entries of a mapping, each with its path.
  std::vector<std::tuple<std::string, const Json*, std::string>> Entries(const char* key) {
    std::vector<std::tuple<std::string, const Json*, std::string>> entries;
    const Json* value = Find(key, false);
    if (value == nullptr) return entries;
    if (!value->is_object()) Fail(fmt::format("'{}' must be a mapping", key));
    for (const auto& [name, entry] : value->items()) {
      entries.emplace_back(name, &entry, fmt::format("{}: {}.{}", where_, key, name));
    }
    return entries;
  }

  const Json* Find(const char* key, bool required) {
    known_.emplace_back(key);
    const auto it = json_.find(key);
    if (it != json_.end() && !it->is_null()) return &*it;
    if (required) Fail(fmt::format("'{}' is missing", key));
    return nullptr;
  }

  void Done() const {
    for (const auto& [key, value] : json_.items()) {
      if (std::find(known_.begin(), known_.end(), key) == known_.end()) {
        Fail(fmt::format("unknown key '{}'{}", key, DidYouMean(key, known_)));
      }
    }
  }

 private:
  const Json& json_;
  std::string where_;
  std::vector<std::string> known_;
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
  column.steps_of = map.Texts("steps_of");
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
  for (const auto& [json, where] : map.Items("stack")) bar.stack.push_back(LoadPart(Mapping(*json, where)));
  if (column.empty() == bar.stack.empty()) map.Fail("a bar has a 'column' or a 'stack'");
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
  if (lines.series.empty() && !lines.along.empty()) map.Fail("'along' belongs to a 'series'");
  lines.x_label = map.Text("x_label");
  lines.marks = map.Text("marks");
  lines.from_zero = map.Flag("from_zero", true);
  if (lines.x.empty() && !(lines.x_label + lines.marks).empty()) {
    map.Fail("'x_label' and 'marks' belong to lines over a column 'x'");
  }
  if (lines.x.empty() != lines.y.empty() || lines.series.empty() == lines.x.empty()) {
    map.Fail("lines have a 'series', over steps, or a column 'x' and a column 'y'");
  }
  map.Done();
  return lines;
}

ChartIntervals LoadIntervals(Mapping map) {
  ChartIntervals intervals;
  intervals.value = map.Text("value", true);
  if (const Json* at = map.Find("at", false)) {
    if (!at->is_number()) map.Fail("'at' is a number");
    intervals.at = at->get<double>();
  }
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
  summary.columns = map.Texts("columns", true);
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
  if (ChartBars bars; map.Find("bars", false) != nullptr) {
    for (const auto& [json, where] : map.Items("bars")) bars.bars.push_back(LoadBar(Mapping(*json, where)));
    if (!bars.bars.empty()) ++kinds;
    chart.kind = std::move(bars);
  }
  const auto load = [&](const char* key, const auto& loader) {
    const Json* item = map.Find(key, false);
    if (item == nullptr) return;
    ++kinds;
    chart.kind = loader(Mapping(*item, map.Where(key)));
  };
  load("lines", LoadLines);
  load("intervals", LoadIntervals);
  load("cells", LoadCells);
  load("scatter", LoadScatter);
  if (kinds != 1) map.Fail("a chart has 'bars', 'lines', 'intervals', 'cells' or 'scatter'");
  map.Done();
  return chart;
}

RowPick LoadPick(Mapping map) {
  RowPick pick;
  for (const auto& [column, json, where] : map.Entries("where")) {
    for (const Json& value : json->is_array() ? *json : Json::array({*json})) {
      if (value.is_structured()) map.Fail("'where' gives a column a value or a list of values");
      pick.where[column].push_back(value.is_string() ? value.get<std::string>() : DumpJson(value));
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
  for (const auto& [name, json, where] : map.Entries("picks")) sentence.picks[name] = LoadPick(Mapping(*json, where));
  const std::string text = map.Text("text", true);
  for (const auto& [json, where] : map.Items("else")) sentence.otherwise.push_back(LoadSentence(Mapping(*json, where)));
  map.Done();
  std::string_view rest = text;
  while (!rest.empty()) {
    const size_t open = std::min(rest.find('{'), rest.size());
    const size_t close = std::min(rest.find('}'), rest.size());
    Sentence::Piece piece{std::string(rest.substr(0, open)), {}, {}};
    if (open < rest.size()) {
      const std::string inside(rest.substr(open + 1, std::max(close, open + 1) - open - 1));
      const size_t dot = inside.find('.');
      piece.pick = inside.substr(0, dot);
      if (close <= open || close == rest.size() || dot == std::string::npos || !sentence.picks.contains(piece.pick)) {
        map.Fail("'text' has '{" + inside + "', but a figure is {pick.column} with one of the sentence's picks");
      }
      piece.column = inside.substr(dot + 1);
    }
    rest.remove_prefix(open == rest.size() ? open : close + 1);
    sentence.pieces.push_back(std::move(piece));
  }
  return sentence;
}

Json ReadYaml(const fs::path& file) {
  const auto place = [&](const Fault& fault) { return Error(ErrorKind::kInvalidInput, FaultText(file, fault)); };
  try {
    std::vector<Fault> faults;
    const std::optional<std::string> text = ReadFileIfThere(file, YamlLimits().bytes + 1);
    if (!text) throw Error(ErrorKind::kInvalidInput, fmt::format("there is no file {}", file.string()));
    Json json = ToJsonValue(ParseYaml(*text), faults);
    if (!faults.empty()) throw place(faults.front());
    return json;
  } catch (const Fault& fault) {
    throw place(fault);
  }
}

}  // namespace

Report LoadReportFolder(const fs::path& folder) {
  const fs::path file = folder / "report.yaml";
  const Json json = ReadYaml(file);
  Mapping map(json, file.string());
  if (const Json* version = map.Find("version", true); *version != kReportVersion) {
    map.Fail(fmt::format("version {}, but this program reads {}", DumpJson(*version), kReportVersion));
  }
  Report report;
  report.name = folder.filename().string();
  report.title = map.Text("title", true);
  report.description = map.Text("description");
  report.empty = map.Text("empty");
  if (const Json* item = map.Find("rows", false)) report.rows = LoadRows(Mapping(*item, map.Where("rows")));
  for (const auto& [note, where] : map.Items("notes")) {
    if (!note->is_string()) map.Fail("'notes' must be a list of texts");
    report.notes.push_back(note->get<std::string>());
  }
  std::set<std::string> names;
  for (const auto& [item, where] : map.Items("columns", true)) {
    Mapping column(*item, where);
    const ReportColumn loaded = LoadColumn(column);
    report.columns.push_back(loaded);
    for (ReportColumn& end : IntervalColumns(loaded)) report.columns.push_back(std::move(end));
    for (size_t c = names.size(); c < report.columns.size(); ++c) {
      const std::string& name = report.columns[c].name;
      if (!names.insert(name).second) column.Fail("the column '" + name + "' is given twice");
    }
  }
  names.clear();
  for (const auto& [item, where] : map.Items("charts")) {
    Mapping chart(*item, where);
    report.charts.push_back(LoadChart(chart));
    if (!names.insert(report.charts.back().id).second) chart.Fail("the id is given twice");
  }
  if (const Json* item = map.Find("summary", false)) {
    Mapping summary(*item, map.Where("summary"));
    report.summary = LoadSummary(summary);
    for (const std::string& name : report.summary->columns) {
      if (FindColumn(report, name) == nullptr) summary.Fail("there is no column '" + name + "'");
    }
  }
  if (const Json* item = map.Find("changes", false)) report.changes = LoadChanges(Mapping(*item, map.Where("changes")));
  for (const auto& [field, where] : map.Items("tells")) {
    if (!field->is_string()) map.Fail("'tells' must be a list of fields' names");
    report.tells.push_back(field->get<std::string>());
  }
  for (const auto& [item, where] : map.Items("conclusion")) {
    report.conclusion.push_back(LoadSentence(Mapping(*item, where)));
  }
  map.Done();
  report.sql = ReadFile(folder / "query.sql");
  return report;
}

}  // namespace ridgeline
