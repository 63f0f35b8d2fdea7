#include "trainers/definition.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "run/fields.h"
#include "run/parallelism.h"
#include "run/result.h"
#include "run/step_figures.h"
#include "trainers/requirements.h"
#include "trainers/stamp.h"
#include "yaml/common_mistakes.h"
#include "yaml/date.h"
#include "yaml/entries.h"

namespace ridgeline::trainers {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMaxLineBytes = 1024;  // of a text about a trainer
constexpr size_t kMaxOwnName = 64;
constexpr size_t kMaxOwnUnit = 32;
constexpr size_t kMostFactors = 8;

constexpr std::array<std::pair<std::string_view, Take>, 9> kTakes = {{{"last", Take::kLast},
                                                                      {"first", Take::kFirst},
                                                                      {"median", Take::kMedian},
                                                                      {"max", Take::kMax},
                                                                      {"min", Take::kMin},
                                                                      {"sum", Take::kSum},
                                                                      {"series", Take::kSeries},
                                                                      {"arrival", Take::kArrival},
                                                                      {"stamp", Take::kStamp}}};

// Ends that a log can tell. Only the harness sets the others.
constexpr std::array<std::string_view, 6> kEnds = {"oom_device", "oom_host", "diverged",
                                                   "crashed",    "invalid",  "infrastructure"};

class Reader {
 public:
  explicit Reader(std::string stem) : stem_(std::move(stem)) {}

  Trainer Read(const yaml::YamlNode& root) {
    if (root.kind != yaml::YamlNode::Kind::kMap) {
      Wrong(root, yaml::NotAMapping("a definition is a mapping", root));
      return {};
    }
    static const yaml::Names known = [] {
      yaml::Names names = {"name",   "about",   "version", "tested",     "tested_on",
                           "result", "metrics", "ends",    "exit_codes", "checks"};
      names.insert(names.end(), std::begin(kInvocationKeys), std::end(kInvocationKeys));
      return names;
    }();
    Map map = Known(root, "key", known);
    Trainer trainer;
    ReadHead(root, map, trainer);
    trainer.invocation = ReadInvocation(map, faults);
    if (trainer.invocation && trainer.invocation->result.has_value() != (trainer.result == Trainer::Result::kFile)) {
      Wrong(root, "`file` says where the program writes its metrics, with `result: file` and a command, and only then");
    }
    if (trainer.result == Trainer::Result::kContract) {
      if (map.contains("metrics")) Wrong(*map["metrics"], "with result: contract the program says its figures itself");
      if (!trainer.invocation) Wrong(root, "with result: contract there is a command: nothing is read of a log");
    } else if (const yaml::YamlNode* metrics = Required(root, map, "metrics")) {
      for (const yaml::YamlNode* item : List(*metrics, "metrics", "name and regex or json")) ReadMetric(*item, trainer);
    }
    if (map.contains("ends")) {
      for (const yaml::YamlNode* item : List(*map["ends"], "ends", "regex and end")) ReadPatternEnd(*item, trainer);
    }
    if (map.contains("exit_codes")) ReadExitCodes(*map["exit_codes"], trainer);
    if (map.contains("checks")) ReadChecks(*map["checks"], trainer);
    return trainer;
  }

  std::vector<yaml::Fault> faults;

 private:
  using Map = std::map<std::string, const yaml::YamlNode*>;

  void Wrong(const yaml::YamlNode& node, std::string message) { faults.push_back({node.place, std::move(message)}); }

  Map Known(const yaml::YamlNode& node, std::string_view what, const yaml::Names& known) {
    Map map;
    for (const auto& [name, value] : yaml::Entries(node, what, known, faults)) map.emplace(name, value);
    return map;
  }

  const yaml::YamlNode* Required(const yaml::YamlNode& of, const Map& map, const std::string& key) {
    const auto found = map.find(key);
    if (found != map.end()) return found->second;
    Wrong(of, fmt::format("'{}' is missing", key));
    return nullptr;
  }

  // Returns text of one line. Adds a fault and returns an empty text if the node is anything else.
  std::string Text(const yaml::YamlNode& node, std::string_view key) {
    if (!node.scalar.is_string()) {
      Wrong(node, fmt::format("{} is text, not {}{}", key, yaml::Describe(node),
                              node.kind == yaml::YamlNode::Kind::kScalar ? ": put it into quotes" : ""));
      return {};
    }
    auto text = node.scalar.get<std::string>();
    if (text.empty() || text.size() > kMaxLineBytes || text.find('\n') != std::string::npos) {
      Wrong(node, fmt::format("{} is one line of at most {} bytes, and not empty", key, kMaxLineBytes));
      return {};
    }
    return text;
  }

  std::string TextOf(const Map& map, const std::string& key) {
    return map.contains(key) ? Text(*map.at(key), key) : std::string();
  }

  // Returns one of these names. Adds a fault and returns an empty text if the node is none of them.
  std::string Choice(const yaml::YamlNode& node, std::string_view key, const yaml::Names& names) {
    std::string text = Text(node, key);
    if (text.empty() || std::find(names.begin(), names.end(), text) != names.end()) return text;
    Wrong(node, fmt::format("unknown {} '{}'{}; known are {}", key, ShortenToBytes(text, 80), DidYouMean(text, names),
                            Join(names, ", ")));
    return {};
  }

  std::vector<const yaml::YamlNode*> List(const yaml::YamlNode& node, std::string_view section, std::string_view of) {
    auto items = yaml::Mappings(node, section, /*lone=*/false, faults, of);
    if (items.size() <= kMostMetrics) return items;
    Wrong(node, fmt::format("{} has at most {} entries, and here {}", section, kMostMetrics, items.size()));
    return {};
  }

  std::optional<Pattern> ReadPattern(const yaml::YamlNode& node) {
    const std::string text = Text(node, "regex");
    if (text.empty()) return std::nullopt;
    try {
      return Pattern(text);
    } catch (const Error& e) {
      Wrong(node, e.message());
      return std::nullopt;
    }
  }

  void ReadHead(const yaml::YamlNode& root, Map& map, Trainer& trainer) {
    if (const yaml::YamlNode* name = Required(root, map, "name")) {
      trainer.name = Text(*name, "name");
      if (!trainer.name.empty() && !IsTrainerName(trainer.name)) {
        Wrong(*name, fmt::format("a name has {}", kTrainerNameRule));
      } else if (!trainer.name.empty() && trainer.name != stem_ && ReleaseAfter(stem_, trainer.name).empty()) {
        Wrong(*name,
              fmt::format("the name is '{}', and the file is called '{}': both are the same, except that the file may "
                          "leave out the release or its last numbers",
                          trainer.name, stem_));
      }
    }
    if (const yaml::YamlNode* about = Required(root, map, "about")) trainer.about = Text(*about, "about");
    if (const yaml::YamlNode* version = Required(root, map, "version")) trainer.version = Text(*version, "version");
    if (const yaml::YamlNode* tested = Required(root, map, "tested")) {
      trainer.tested = Choice(*tested, "tested", {"log", "loader", "source"});
      ReadTestedOn(*tested, map, trainer);
    }
    if (const yaml::YamlNode* result = Required(root, map, "result")) {
      const std::string kind = Choice(*result, "result", {"patterns", "file", "contract"});
      trainer.result = kind == "file"       ? Trainer::Result::kFile
                       : kind == "contract" ? Trainer::Result::kContract
                                            : Trainer::Result::kPatterns;
    }
  }

  void ReadTestedOn(const yaml::YamlNode& tested, const Map& map, Trainer& trainer) {
    trainer.tested_on = TextOf(map, "tested_on");
    if (!map.contains("tested_on")) {
      if (trainer.tested == "loader") Wrong(tested, "tested: loader has a date, `tested_on: YYYY-MM-DD`");
    } else if (trainer.tested == "source") {
      Wrong(*map.at("tested_on"), "tested_on goes with tested: loader or log");
    } else if (!trainer.tested_on.empty() && (trainer.tested_on.size() != 10 || !yaml::IsDate(trainer.tested_on))) {
      Wrong(*map.at("tested_on"), "tested_on is a day of the calendar, YYYY-MM-DD");
    }
  }

  void ReadMetric(const yaml::YamlNode& node, Trainer& trainer) {
    const Map map = Known(node, "key of a metric",
                          {"name", "regex", "json", "unit", "take", "format", "times", "every", "step", "rank", "if"});
    Metric metric;
    const yaml::YamlNode* name = Required(node, map, "name");
    if (map.contains("take")) metric.take = TakeOf(*map.at("take"));
    ReadSource(node, map, trainer.result == Trainer::Result::kFile, metric);
    if (name == nullptr || !ReadFigure(*name, map, metric)) return;
    if (metric.take == Take::kArrival || metric.take == Take::kStamp) {
      ReadTimed(node, map, trainer, metric);
    } else {
      ReadUnit(node, map, metric);
      for (const char* key : {"format", "every"}) {
        if (map.contains(key))
          Wrong(*map.at(key), fmt::format("{} goes with take: {}", key, *key == 'f' ? "stamp" : "arrival or stamp"));
      }
    }
    if (metric.unit == nullptr) return;
    if (map.contains("times")) ReadFactors(*map.at("times"), trainer, metric);
    if (map.contains("if")) {
      if (!trainer.invocation) return Wrong(*map.at("if"), "if goes with a command, and there is none");
      metric.only_if = ReadCondition(*map.at("if"), "if", *trainer.invocation, faults);
    }
    if (metric.figure->dimension == Dimension::kText &&
        ((metric.take != Take::kLast && metric.take != Take::kFirst) || !metric.factors.empty())) {
      Wrong(node, fmt::format("{} is text: take the first or the last", metric.figure->name));
    }
    trainer.metrics.push_back(std::move(metric));
  }

  // Reads the name of a figure: one of the table, or, if the metric has a unit, one of the definition's own.
  bool ReadFigure(const yaml::YamlNode& node, const Map& map, Metric& metric) {
    const std::string name = Text(node, "metric");
    if (name.empty()) return false;
    metric.figure = FindFigure(name);
    if (metric.figure != nullptr) return true;
    const bool is_name = name.size() <= kMaxOwnName &&
                         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos;
    if (!map.contains("unit") || !is_name) {
      Wrong(node, fmt::format("unknown metric '{}'{}; known are {}. One of your own has a unit, and a name of small "
                              "letters, digits and '_'",
                              ShortenToBytes(name, 80), DidYouMean(name, FigureNames()), Join(FigureNames(), ", ")));
      return false;
    }
    auto own = std::make_shared<OwnMetric>();
    own->name = name;
    own->figure = {own->name, Dimension::kOwn, OfRanks::kFirst};
    metric.figure = &own->figure;
    metric.own = std::move(own);
    return true;
  }

  void ReadSource(const yaml::YamlNode& node, const Map& map, bool file, Metric& metric) {
    if (map.contains("regex") == map.contains("json") || (file && map.contains("regex"))) {
      Wrong(map.contains("regex") ? *map.at("regex") : node,
            file ? "with result: file a metric has 'json', not 'regex'" : "a metric has either 'regex' or 'json'");
      return;
    }
    if (map.contains("json")) {
      metric.pointer = Pointer(*map.at("json"), "json");
      if (map.contains("step")) metric.step_pointer = Pointer(*map.at("step"), "step");
      if (map.contains("rank")) metric.rank_pointer = Pointer(*map.at("rank"), "rank");
      return;
    }
    for (const char* key : {"step", "rank"}) {
      if (map.contains(key))
        Wrong(*map.at(key), fmt::format("{0} goes with json: a regex has a group (?P<{0}>…)", key));
    }
    const yaml::YamlNode& regex = *map.at("regex");
    metric.pattern = ReadPattern(regex);
    const bool has_value = metric.take != Take::kArrival;
    const std::string problem = metric.pattern && has_value ? metric.pattern->GroupsProblem() : "";
    if (!problem.empty()) Wrong(regex, problem);
  }

  std::string Pointer(const yaml::YamlNode& node, const char* key) {
    std::string pointer = Text(node, key);
    try {
      const Json::json_pointer checked(pointer);
    } catch (const Json::parse_error&) {
      Wrong(node, fmt::format("{} is a pointer such as /train/loss (RFC 6901)", key));
    }
    return pointer;
  }

  Take TakeOf(const yaml::YamlNode& node) {
    yaml::Names names;
    for (const auto& [name, take] : kTakes) names.emplace_back(name);
    const std::string text = Choice(node, "take", names);
    const auto* found =
        std::find_if(kTakes.begin(), kTakes.end(), [&](const auto& entry) { return entry.first == text; });
    return found == kTakes.end() ? Take::kLast : found->second;
  }

  // Reads `take: arrival` and `take: stamp`, which take the times of lines.
  void ReadTimed(const yaml::YamlNode& node, const Map& map, const Trainer& trainer, Metric& metric) {
    if (metric.figure->name != "step_time") {
      return Wrong(node, fmt::format("take: {} is of step_time alone", TakeName(metric.take)));
    }
    if (trainer.result == Trainer::Result::kFile || map.contains("unit")) {
      return Wrong(node, fmt::format("take: {} counts lines of a log, and has no unit", TakeName(metric.take)));
    }
    metric.unit = FindUnit(Dimension::kTime, "ns");
    if (map.contains("every")) metric.every = Factor(*map.at("every"), "every", trainer);
    if (metric.take == Take::kArrival) {
      if (map.contains("format")) Wrong(*map.at("format"), "format goes with take: stamp");
      return;
    }
    const yaml::YamlNode* format = Required(node, map, "format");
    if (format == nullptr) return;
    metric.format = Text(*format, "format");
    if (metric.format.empty()) return;
    if (const char* problem = StampFormatProblem(metric.format)) Wrong(*format, problem);
  }

  // Reads a factor: a number above 0, or the name of a field.
  std::string Factor(const yaml::YamlNode& node, const char* key, const Trainer& trainer) {
    if (node.scalar.is_number() && node.scalar.get<double>() > 0) return DumpJson(node.scalar);
    std::string name = node.scalar.is_string() ? node.scalar.get<std::string>() : std::string();
    if (PointNumber(trainer, {}, name)) return name;
    Wrong(node, fmt::format("{} is a number above 0 or a field that is one, such as grad_accumulation", key));
    return "1";
  }

  void ReadFactors(const yaml::YamlNode& node, const Trainer& trainer, Metric& metric) {
    if (node.kind == yaml::YamlNode::Kind::kList && node.items.size() <= kMostFactors) {
      for (const yaml::YamlNode& item : node.items) metric.factors.push_back(Factor(item, "times", trainer));
    } else {
      metric.factors.push_back(Factor(node, "times", trainer));
    }
  }

  void ReadUnit(const yaml::YamlNode& node, const Map& map, Metric& metric) {
    const yaml::YamlNode* said = map.contains("unit") ? map.at("unit") : nullptr;
    const bool named = metric.pattern && metric.pattern->has_unit();
    yaml::Names names;
    if (said != nullptr && said->kind == yaml::YamlNode::Kind::kList) {
      for (const yaml::YamlNode& item : said->items) names.push_back(Text(item, "unit"));
      if (!named) return Wrong(*said, "if there are several units, a line names one in the group (?P<unit>…)");
    } else if (said != nullptr) {
      names.push_back(Text(*said, "unit"));
    }
    if (metric.own) return OwnUnit(*said, names, named, metric);
    const Dimension dimension = metric.figure->dimension;
    // The units that a line may name: all of the dimension, unless a list says which.
    const yaml::Names known = UnitNames(dimension);
    if (named && (dimension == Dimension::kPlain || dimension == Dimension::kText)) {
      return Wrong(node, fmt::format("{} has no unit", metric.figure->name));
    }
    for (const std::string& name : named&& names.size() < 2 ? known : names) {
      if (const LoggedUnit* unit = FindUnit(dimension, name)) metric.units.push_back(unit);
    }
    if (names.empty() && named && dimension != Dimension::kTokenRate) names.push_back(known.front());
    for (const std::string& name : names.empty() ? yaml::Names{""} : names) {
      const LoggedUnit* unit = FindUnit(dimension, name);
      if (metric.unit == nullptr) metric.unit = unit;
      if (unit != nullptr) {
        if (unit->kept != metric.unit->kept) Wrong(*said, "units of a list are of the same kind");
        continue;
      }
      Wrong(said == nullptr ? node : *said,
            name.empty() ? fmt::format("{} needs a unit: one of {}", metric.figure->name, Join(known, ", "))
                         : fmt::format("{} has no unit '{}'{}; it is one of {}", metric.figure->name,
                                       ShortenToBytes(name, 80), DidYouMean(name, known), Join(known, ", ")));
    }
    if (!named) metric.units.clear();
  }

  // Keeps values as they are logged. If a line names a unit, its value is converted to the metric's unit.
  void OwnUnit(const yaml::YamlNode& node, const yaml::Names& names, bool named, Metric& metric) {
    const std::string text = names.size() == 1 ? names.front() : std::string();
    if (text.empty() || text.size() > kMaxOwnUnit || PrintableLine(text) != text) {
      return Wrong(node, fmt::format("a unit of your own is one line of at most {} bytes", kMaxOwnUnit));
    }
    auto own = std::make_shared<OwnMetric>();
    own->name = metric.own->name;
    own->unit_text = text == "none" ? "" : text;
    own->figure = {own->name, Dimension::kOwn, OfRanks::kFirst};
    own->unit = {own->unit_text, Dimension::kOwn, own->unit_text, 1};
    metric.figure = &own->figure;
    metric.unit = &own->unit;
    metric.own = own;
    if (!named) return;
    for (const Dimension dimension : {Dimension::kTime, Dimension::kMemory}) {
      const LoggedUnit* unit = FindPrintedUnit(dimension, text);
      if (unit == nullptr || unit->form != LoggedUnit::Form::kPlain) continue;
      for (const std::string& name : UnitNames(dimension)) metric.units.push_back(FindUnit(dimension, name));
    }
    if (metric.units.empty()) Wrong(node, "a line may name a unit of time or of memory alone");
  }

  // REQUIRES: `map` has `end`, and perhaps `reason` and `hint`.
  EndRule ReadEnd(const yaml::YamlNode& node, const Map& map) {
    EndRule rule;
    rule.hint = TextOf(map, "hint");
    std::string reason;
    if (map.contains("reason")) reason = Choice(*map.at("reason"), "reason", ReasonNames());
    const yaml::YamlNode* named = Required(node, map, "end");
    if (named == nullptr) return rule;
    const std::string end = Choice(*named, "end", yaml::Names(kEnds.begin(), kEnds.end()));
    if (end.empty()) return rule;
    if ((end == "infrastructure") == map.contains("reason")) {
      if (!map.contains("reason") || !reason.empty()) rule.end = EndFromNames(end, reason);
    } else {
      Wrong(*named, end == "infrastructure"
                        ? fmt::format("infrastructure has a reason: one of {}", Join(ReasonNames(), ", "))
                        : fmt::format("{} has no reason: only infrastructure has", end));
    }
    return rule;
  }

  void ReadPatternEnd(const yaml::YamlNode& node, Trainer& trainer) {
    const Map map = Known(node, "key of an end", {"regex", "end", "reason", "hint"});
    std::optional<Pattern> pattern;
    if (const yaml::YamlNode* regex = Required(node, map, "regex")) pattern = ReadPattern(*regex);
    EndRule rule = ReadEnd(node, map);
    if (pattern) trainer.ends.push_back({*std::move(pattern), std::move(rule)});
  }

  void ReadExitCodes(const yaml::YamlNode& node, Trainer& trainer) {
    if (node.kind != yaml::YamlNode::Kind::kMap) {
      Wrong(node, yaml::NotAMapping("exit_codes is a mapping of exit codes to ends", node));
      return;
    }
    for (const auto& [key, value] : node.entries) {
      if (!key.scalar.is_number_integer() || key.scalar < 1 || key.scalar > 255) {
        Wrong(key, fmt::format("an exit code is a whole number between 1 and 255, not {}", yaml::Describe(key)));
        continue;
      }
      // `137: oom_host` is the short form.
      const Map map = value.kind == yaml::YamlNode::Kind::kMap
                          ? Known(value, "key of an end", {"end", "reason", "hint"})
                          : Map{{"end", &value}};
      if (!trainer.exit_codes.emplace(key.scalar.get<int>(), ReadEnd(value, map)).second) {
        Wrong(key, fmt::format("exit code {} is given twice", key.scalar.get<int>()));
      }
    }
  }

  void ReadChecks(const yaml::YamlNode& node, Trainer& trainer) {
    const Map map = Known(node, "check", {"parameters", "flops"});
    for (const auto& [name, value] : map) {
      bool& check = name == "flops" ? trainer.checks_flops : trainer.checks_parameters;
      if (value->scalar.is_boolean()) {
        check = value->scalar.get<bool>();
      } else if (value->scalar == "yes" || value->scalar == "no") {
        check = value->scalar == "yes";
      } else {
        Wrong(*value, fmt::format("checks: {} is yes or no, not {}", name, yaml::Describe(*value)));
      }
    }
  }

  std::string stem_;
};

}  // namespace

std::string_view TakeName(Take take) { return kTakes[static_cast<size_t>(take)].first; }

std::string DefinitionWords(const Trainer& trainer) { return fmt::format("{} ({})", trainer.name, trainer.version); }

int64_t DataParallelRanks(const Trainer& trainer, const RunSpec& spec) {
  return trainer.invocation ? DataParallelRanks(*trainer.invocation, spec) : DataParallelRanks(spec);
}

int64_t TokensAStep(const Trainer& trainer, const RunSpec& spec) {
  return TokensAStep(spec, DataParallelRanks(trainer, spec));
}

std::optional<double> PointNumber(const Trainer& trainer, const RunSpec& spec, std::string_view name) {
  const int64_t tokens = TokensAStep(trainer, spec);
  const int64_t sequences = tokens / std::max<int64_t>(spec.seq_length, 1);
  if (name == "tokens_per_step") return static_cast<double>(tokens);
  if (name == "global_batch_size") return static_cast<double>(sequences);
  if (name == "world_size") return static_cast<double>(spec.ranks);
  const Field* field = trainer.invocation ? trainer.invocation->FindOwn(name) : nullptr;
  if (field == nullptr) field = FindField(name);
  if (field == nullptr) return std::nullopt;
  const FieldValue value = ValueOf(spec, *field);
  if (const auto* whole = std::get_if<int64_t>(&value)) return static_cast<double>(*whole);
  if (const auto* number = std::get_if<double>(&value)) return *number;
  return std::nullopt;
}

bool IsOfPoint(const Trainer& trainer, const Metric& metric, const RunSpec& spec) {
  return !metric.only_if || Holds(*metric.only_if, *trainer.invocation, spec);
}

std::string LeftOutText(const Metric& metric) {
  return fmt::format("{} is left out: its definition reads it only if {}", metric.figure->name,
                     metric.only_if->words());
}

Trainer ParseTrainer(std::string_view text, const fs::path& file) {
  Reader reader(file.stem().string());
  Trainer trainer;
  try {
    yaml::YamlLimits limits;
    limits.bytes = kMaxTrainerBytes;
    trainer = reader.Read(yaml::ParseYaml(text, limits));
  } catch (const yaml::Fault& fault) {
    reader.faults.push_back(fault);
  }
  if (!reader.faults.empty())
    yaml::ThrowFaults(file, std::move(reader.faults), "docs/trainer-definitions.md describes definitions");
  trainer.text = text;
  return trainer;
}

Trainer LoadTrainer(const fs::path& file) {
  const auto text = ReadFileIfThere(file, kMaxTrainerBytes + 1);
  if (!text) throw Error(ErrorKind::kInvalidInput, fmt::format("there is no file {}", file.string()));
  return ParseTrainer(*text, file);
}

}  // namespace ridgeline::trainers
