#include "sweep/sweep.h"

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "run/result.h"
#include "sweep/expand.h"
#include "sweep/values.h"
#include "sweep/walk.h"
#include "yaml/units.h"
#include "yaml/yaml.h"

namespace ridgeline {
namespace {

using Names = std::vector<std::string>;

// Reads the sections of one file into one sweep, and keeps going: every fault is collected.
class Reader {
 public:
  Sweep sweep;
  std::vector<Fault> faults;

  void ReadFile(const YamlNode& root) {
    static const Names kSections = {"name",    "description", "defaults",   "matrix", "zip",   "include",
                                    "exclude", "measure",     "checkpoint", "launch", "report"};
    if (root.kind != YamlNode::Kind::kMap) {
      Add(root.place, "a sweep is a mapping with a name, not " + Describe(root));
      return;
    }
    const auto sections = Entries(root, "section", kSections);
    const auto section = [&](std::string_view name) -> const YamlNode* {
      const auto it = std::find_if(sections.begin(), sections.end(), [&](const auto& s) { return s.first == name; });
      return it == sections.end() ? nullptr : it->second;
    };
    sweep.defaults_place = root.place;
    if (const auto* node = section("name")) {
      ReadName(*node);
    } else {
      Add(root.place, "name is not given");
    }
    if (const auto* node = section("description")) ReadText(*node, "description", sweep.description);
    if (const auto* node = section("defaults")) ReadDefaults(*node);
    if (const auto* node = section("measure")) ReadMeasure(*node);
    if (const auto* node = section("checkpoint")) ReadCheckpoint(*node);
    if (const auto* node = section("matrix")) ReadMatrix(*node);
    if (const auto* node = section("zip")) ReadZip(*node);
    if (const auto* node = section("exclude")) ReadExclude(*node);
    if (const auto* node = section("include")) ReadInclude(*node);
    if (const auto* node = section("launch")) ReadLaunch(*node);
    if (const auto* node = section("report")) ReadReports(*node);
  }

 private:
  using Entry = std::pair<std::string, const YamlNode*>;

  void Add(const Place& place, std::string message) { faults.push_back({place, std::move(message)}); }

  // The entries of a mapping whose keys are text, each once. `known` empty: any name.
  std::vector<Entry> Entries(const YamlNode& map, std::string_view what, const Names& known) {
    std::vector<Entry> entries;
    std::set<std::string> seen;
    for (const auto& [key, value] : map.entries) {
      if (!key.scalar.is_string()) {
        Add(key.place, fmt::format("the name of a {} must be text, not {}", what, Describe(key)));
        continue;
      }
      auto name = key.scalar.get<std::string>();
      if (!seen.insert(name).second) {
        Add(key.place, fmt::format("'{}' is given twice", name));
      } else if (!known.empty() && std::find(known.begin(), known.end(), name) == known.end()) {
        const std::string meant = DidYouMean(name, known);
        Add(key.place, fmt::format("unknown {} '{}'{}", what, name,
                                   meant.empty() && known.size() <= 12 ? "; known are " + Join(known, ", ") : meant));
      } else {
        entries.emplace_back(std::move(name), &value);
      }
    }
    return entries;
  }

  static const Names& FieldNames() {
    static const Names names = [] {
      Names result;
      for (const Field& field : Fields()) result.emplace_back(field.name);
      return result;
    }();
    return names;
  }

  // The entries of a mapping of RunSpec fields.
  std::vector<std::pair<const Field*, const YamlNode*>> FieldEntries(const YamlNode& node, std::string_view section,
                                                                     const Names& known = FieldNames()) {
    std::vector<std::pair<const Field*, const YamlNode*>> fields;
    if (node.kind != YamlNode::Kind::kMap) {
      Add(node.place, fmt::format("{} is a mapping of fields, not {}", section, Describe(node)));
      return fields;
    }
    for (const auto& [name, value] : Entries(node, "field", known)) fields.emplace_back(FindField(name), value);
    return fields;
  }

  // A list's mappings; a lone mapping counts as a list of one where `lone` says so.
  std::vector<const YamlNode*> Mappings(const YamlNode& node, std::string_view section, bool lone) {
    std::vector<const YamlNode*> maps;
    if (lone && node.kind == YamlNode::Kind::kMap) return {&node};
    if (node.kind != YamlNode::Kind::kList) {
      Add(node.place, fmt::format("{} is a list of mappings, not {}", section, Describe(node)));
    }
    for (const YamlNode& item : node.items) {
      if (item.kind != YamlNode::Kind::kMap || item.entries.empty()) {
        Add(item.place, fmt::format("an entry of {} is a mapping of fields, not {}", section,
                                    item.kind == YamlNode::Kind::kMap ? "an empty one" : Describe(item)));
      } else {
        maps.push_back(&item);
      }
    }
    return maps;
  }

  void ReadText(const YamlNode& node, std::string_view name, std::string& to) {
    if (node.scalar.is_string()) {
      to = node.scalar.get<std::string>();
    } else {
      Add(node.place, fmt::format("{} must be text, not {}", name, Describe(node)));
    }
  }

  void ReadName(const YamlNode& node) {
    ReadText(node, "name", sweep.name);
    const bool control = std::any_of(sweep.name.begin(), sweep.name.end(),
                                     [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
    if (node.scalar.is_string() && (sweep.name.empty() || sweep.name.size() > 200 || control)) {
      Add(node.place, "name must be one line of 1 to 200 characters");
    }
  }

  void ReadDefaults(const YamlNode& node) {
    sweep.defaults_place = node.place;
    static const Names kKnown = [] {
      Names names = FieldNames();
      names.emplace_back("checkpoint");
      return names;
    }();
    for (const auto& [field, value] : FieldEntries(node, "defaults", kKnown)) {
      if (field == nullptr) {
        ReadCheckpoint(*value);
      } else if (auto setting = ReadSetting(*field, *value, faults)) {
        sweep.defaults.push_back(std::move(*setting));
      }
    }
  }

  // A value that all points share, from another section than defaults.
  void ReadShared(const Field& field, const YamlNode& value) {
    auto setting = ReadSetting(field, value, faults);
    if (!setting) return;
    const auto given =
        std::find_if(sweep.defaults.begin(), sweep.defaults.end(), [&](const Setting& s) { return s.field == &field; });
    if (given != sweep.defaults.end()) {
      Add(value.place, fmt::format("{} is given in defaults too (line {})", field.name, given->place.line));
    } else {
      sweep.defaults.push_back(std::move(*setting));
    }
  }

  void ReadMeasure(const YamlNode& node) {
    static const Names kKnown = {"warmup_steps", "steps", "repeats"};
    for (const auto& [field, value] : FieldEntries(node, "measure", kKnown)) ReadShared(*field, *value);
  }

  void ReadCheckpoint(const YamlNode& node) {
    static const Names kKnown = {"dir", "every_steps", "keep"};
    if (node.kind != YamlNode::Kind::kMap) {
      Add(node.place, fmt::format("checkpoint is a mapping of dir, every_steps and keep, not {} (activation "
                                  "checkpointing is the field checkpointing)",
                                  Describe(node)));
      return;
    }
    for (const auto& [key, value] : Entries(node, "setting of checkpoint", kKnown)) {
      ReadShared(*FindField("checkpoint." + key), *value);
    }
  }

  bool IsAxis(const Field* field) const {
    for (const AxisGroup& group : sweep.groups) {
      for (const Axis& axis : group) {
        if (axis.front().field == field) return true;
      }
    }
    return false;
  }

  void ReadMatrix(const YamlNode& node) {
    for (const auto& [field, values] : FieldEntries(node, "matrix")) {
      Axis axis = ReadAxis(*field, *values, faults);
      if (!axis.empty()) sweep.groups.push_back({std::move(axis)});
    }
  }

  void ReadZip(const YamlNode& node) {
    for (const YamlNode* map : Mappings(node, "zip", /*lone=*/true)) {
      AxisGroup group;
      const size_t faults_before = faults.size();
      for (const auto& [field, values] : FieldEntries(*map, "a zip group")) {
        if (IsAxis(field)) Add(values->place, fmt::format("{} is an axis already", field->name));
        Axis axis = ReadAxis(*field, *values, faults);
        if (!axis.empty()) group.push_back(std::move(axis));
      }
      if (faults.size() != faults_before || group.empty()) continue;
      for (const Axis& axis : group) {
        if (axis.size() == group.front().size()) continue;
        Add(axis.front().place, fmt::format("{} has {} values, but {} has {}: axes that move together are equally long",
                                            axis.front().field->name, axis.size(), group.front().front().field->name,
                                            group.front().size()));
      }
      if (faults.size() == faults_before) sweep.groups.push_back(std::move(group));
    }
  }

  void ReadExclude(const YamlNode& node) {
    for (const YamlNode* map : Mappings(node, "exclude", /*lone=*/false)) {
      Exclude exclude{{}, map->place};
      const size_t faults_before = faults.size();
      for (const auto& [field, value] : FieldEntries(*map, "exclude")) {
        if (auto condition = ReadCondition(*field, *value, faults)) exclude.conditions.push_back(std::move(*condition));
      }
      if (faults.size() == faults_before) sweep.exclude.push_back(std::move(exclude));
    }
  }

  void ReadInclude(const YamlNode& node) {
    for (const YamlNode* map : Mappings(node, "include", /*lone=*/false)) {
      const size_t faults_before = faults.size();
      std::vector<Include> entries = {Include{{}, {}, map->place}};  // one for each combination of its axes' values
      for (const auto& [field, value] : FieldEntries(*map, "include")) {
        if (!IsAxis(field)) {
          const Axis axis = ReadAxis(*field, *value, faults);
          for (Include& entry : entries) entry.additions.push_back(axis);
          continue;
        }
        const auto condition = ReadCondition(*field, *value, faults);
        if (!condition) continue;
        std::vector<Include> product;
        for (const Include& entry : entries) {
          for (const FieldValue& one : condition->values) {
            product.push_back(entry);
            product.back().conditions.push_back({field, condition->op, {one}, condition->place});
          }
        }
        entries = std::move(product);
      }
      if (faults.size() != faults_before) continue;
      std::move(entries.begin(), entries.end(), std::back_inserter(sweep.include));
    }
  }

  void ReadWhole(const YamlNode& node, const std::string& name, int64_t min, int64_t max, int64_t& to) {
    if (node.scalar.is_number_integer() && node.scalar >= min && node.scalar <= max) {
      to = node.scalar.get<int64_t>();
    } else {
      Add(node.place, fmt::format("{} must be an integer between {} and {}, not {}", name, min, max, Describe(node)));
    }
  }

  void ReadTrainer(const YamlNode& node) {
    std::vector<YamlNode> alone;
    if (node.kind == YamlNode::Kind::kScalar) alone.push_back(node);
    for (const YamlNode& item : node.kind == YamlNode::Kind::kList ? node.items : alone) {
      if (item.scalar.is_string() && item.scalar.get_ref<const std::string&>().find('\0') == std::string::npos) {
        sweep.launch.trainer.push_back(item.scalar.get<std::string>());
      } else {
        Add(item.place, "an argument of trainer must be text, not " + Describe(item));
      }
    }
    const auto& argv = sweep.launch.trainer;
    if (node.kind == YamlNode::Kind::kMap || (node.kind == YamlNode::Kind::kList && node.items.empty()) ||
        (!argv.empty() && argv.front().empty())) {
      Add(node.place, "trainer is a list: a program, then its arguments");
    }
  }

  // "20" points, or points for "20m".
  void ReadBundle(const YamlNode& node) {
    const auto seconds = ReadSeconds(node);
    if (node.scalar.is_string() && seconds && *seconds > 0) {
      sweep.launch.bundle_s = *seconds;
    } else if (node.scalar.is_number_integer()) {
      ReadWhole(node, "bundle", 1, 100'000, sweep.launch.bundle);
    } else {
      Add(node.place, "bundle is a number of points, or a duration such as 20m, not " + Describe(node));
    }
  }

  void ReadRetries(const YamlNode& node) {
    if (node.kind != YamlNode::Kind::kMap) {
      Add(node.place, "retry is a mapping such as {preempted: 3, node_failed: 2}, not " + Describe(node));
      return;
    }
    Names ends;
    for (const auto& [status, times] : sweep.launch.retries) ends.emplace_back(StatusName(status));
    for (const auto& [name, value] : Entries(node, "end to retry after", ends)) {
      int64_t times = 0;
      ReadWhole(*value, name, 0, 1000, times);
      if (std::find(ends.begin(), ends.end(), name) != ends.end()) sweep.launch.retries[StatusFromName(name)] = times;
    }
  }

  void ReadLaunch(const YamlNode& node) {
    static const Names kKnown = {"launcher", "cpus",         "memory_limit", "time_limit", "bundle",
                                 "trainer",  "max_parallel", "save_time",    "retry"};
    if (node.kind != YamlNode::Kind::kMap) {
      Add(node.place, "launch is a mapping, not " + Describe(node));
      return;
    }
    Launch& launch = sweep.launch;
    const std::vector<Entry> entries = Entries(node, "launch setting", {});
    for (const auto& [name, value] : entries) {
      if (name == "launcher") {
        ReadText(*value, name, launch.launcher);
        if (value->scalar.is_string() && !IsPlainName(launch.launcher)) {
          Add(value->place, "a launcher's name is of letters, digits, - and _");
        }
      }
    }
    Names near_to = kKnown;
    near_to.push_back(launch.launcher);
    for (const auto& [name, value] : entries) {
      if (name == "cpus") {
        ReadWhole(*value, name, 1, 4096, launch.cpus);
      } else if (name == "bundle") {
        ReadBundle(*value);
      } else if (name == "max_parallel") {
        ReadWhole(*value, name, 1, 100'000, launch.max_parallel);
      } else if (name == "memory_limit") {
        const auto bytes = ReadBytes(*value);
        if (!bytes) Add(value->place, "memory_limit is a size such as 8GB or 512MiB, not " + Describe(*value));
        launch.memory_limit_bytes = bytes.value_or(0);
      } else if (name == "time_limit") {
        const auto seconds = ReadSeconds(*value);
        if (!seconds) Add(value->place, "time_limit is a duration such as 90s, 10m or 2h, not " + Describe(*value));
        launch.time_limit_s = seconds.value_or(0);
      } else if (name == "save_time") {
        const auto seconds = ReadSeconds(*value);
        if (!seconds) Add(value->place, "save_time is a duration such as 90s or 2m, not " + Describe(*value));
        launch.save_time_s = seconds.value_or(0);
      } else if (name == "trainer") {
        ReadTrainer(*value);
      } else if (name == "retry") {
        ReadRetries(*value);
      } else if (name != "launcher") {
        // Another mapping is the settings of the launcher it is named after, which checks them itself.
        const std::string meant = Nearest(name, near_to);
        const bool for_launcher = value->kind == YamlNode::Kind::kMap && (meant.empty() || meant == name);
        if (!for_launcher) {
          Add(value->place,
              fmt::format("unknown launch setting '{}'{}", name,
                          meant.empty() ? "; known are " + Join(kKnown, ", ") : DidYouMean(name, near_to)));
        }
      }
      launch.config[name] = ToJsonValue(*value, faults);
    }
  }

  void ReadReports(const YamlNode& node) {
    std::vector<YamlNode> alone;
    if (node.kind == YamlNode::Kind::kScalar) alone.push_back(node);
    if (node.kind == YamlNode::Kind::kMap) Add(node.place, "report is a list of names, not a mapping");
    for (const YamlNode& item : node.kind == YamlNode::Kind::kList ? node.items : alone) {
      if (!item.scalar.is_string() || !IsPlainName(item.scalar.get<std::string>())) {
        Add(item.place, "a report's name is of letters, digits, - and _, not " + Describe(item));
      } else {
        sweep.reports.push_back(item.scalar.get<std::string>());
      }
    }
  }

  // Such names become file names.
  static bool IsPlainName(const std::string& name) {
    static constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    return !name.empty() && name.size() <= 100 && name.find_first_not_of(kAllowed) == std::string::npos;
  }
};

}  // namespace

Sweep LoadSweep(const std::filesystem::path& file) { return ParseSweep(ReadFile(file), file); }

Sweep ParseSweep(std::string_view text, const std::filesystem::path& file) {
  Reader reader;
  try {
    reader.ReadFile(ParseYaml(text));
    if (!reader.faults.empty()) {
      // Show what else is wrong, so that one look at the file mends it all. Faults that may only follow from those
      // found already are left out.
      for (const Impossible& impossible : Walk(reader.sweep, [](const RunSpec&) {}).impossible) {
        if (impossible.attributed) reader.faults.push_back(impossible.fault);
      }
    }
  } catch (const Fault& fault) {
    reader.faults.push_back(fault);
  }
  if (!reader.faults.empty()) ThrowFaults(file, std::move(reader.faults), kSweepHint);
  reader.sweep.file = file;
  reader.sweep.text = text;
  return std::move(reader.sweep);
}

std::vector<const Field*> VaryingFields(const Sweep& sweep) {
  std::vector<const Field*> fields;
  const auto add = [&](const Field* field) {
    if (std::find(fields.begin(), fields.end(), field) == fields.end()) fields.push_back(field);
  };
  for (const AxisGroup& group : sweep.groups) {
    for (const Axis& axis : group) add(axis.front().field);
  }
  for (const Include& include : sweep.include) {
    for (const Axis& axis : include.additions) {
      if (!axis.empty()) add(axis.front().field);
    }
  }
  return fields;
}

}  // namespace ridgeline
