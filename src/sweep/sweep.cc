#include "sweep/sweep.h"

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/command_words.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "sweep/entries.h"
#include "sweep/launch.h"
#include "sweep/model_file.h"
#include "sweep/price.h"
#include "sweep/published.h"
#include "sweep/read_search.h"
#include "sweep/setting_axes.h"
#include "sweep/values.h"
#include "sweep/walk.h"
#include "trainers/find.h"
#include "yaml/common_mistakes.h"
#include "yaml/yaml.h"

namespace ridgeline::sweep {
namespace {

// Reads the sections of one file into one sweep. Goes on after a fault, to collect them all.
class SweepReader {
 public:
  Sweep sweep;
  std::vector<yaml::Fault> faults;

  // `folders` may hold definitions of its trainers.
  void ReadFile(yaml::YamlNode root, const std::vector<std::filesystem::path>& folders) {
    static const yaml::Names kSections = {"name",      "description", "defaults",   "matrix", "zip",    "include",
                                          "exclude",   "measure",     "checkpoint", "init",   "launch", "price",
                                          "published", "report",      "search",     "set",    "only",   "setup"};
    if (root.kind != yaml::YamlNode::Kind::kMap) {
      Add(root.place, yaml::NotAMapping("a sweep is a mapping with a name", root));
      return;
    }
    yaml::Entries(root, "section", kSections, faults);
    ApplySet(root, faults);
    std::vector<yaml::Fault> told_already;
    const auto sections = yaml::Entries(root, "section", kSections, told_already);
    const auto section = [&](std::string_view name) -> const yaml::YamlNode* {
      const auto it = std::find_if(sections.begin(), sections.end(), [&](const auto& s) { return s.first == name; });
      return it == sections.end() ? nullptr : it->second;
    };
    sweep.defaults_place = root.place;
    auto settings = TakeSettingFields(root, faults);
    sweep.trainers = SweepTrainers(root, folders, faults);
    sweep.trainers.AddSettings(std::move(settings));
    if (const auto* node = section("name")) {
      ReadName(*node);
    } else {
      Add(root.place, "name is not given");
    }
    if (const auto* node = section("description")) ReadText(*node, "description", sweep.description);
    if (const auto* node = section("defaults")) ReadDefaults(*node);
    if (const auto* node = section("measure")) ReadMeasure(*node);
    if (const auto* node = section("checkpoint")) ReadCheckpoint(*node);
    if (const auto* node = section("init")) ReadInit(*node);
    if (const auto* node = section("matrix")) ReadMatrix(*node);
    if (const auto* node = section("zip")) ReadZip(*node);
    if (const auto* node = section("exclude")) ReadExclude(*node);
    if (const auto* node = section("include")) ReadInclude(*node);
    if (const auto* node = section("only")) ReadOnly(*node);
    if (const auto* node = section("launch")) ReadLaunch(*node, sweep, faults);
    AddSettingRules(sweep, faults);
    if (const auto* node = section("setup")) ReadSetup(*node);
    if (const auto* node = section("price")) ReadPrice(*node, sweep, faults);
    if (const auto* node = section("published")) ReadPublished(*node, sweep, values_, faults);
    if (const auto* node = section("report")) ReadReports(*node);
    RefuseToCompareLargest();
    if (const auto* node = section("search")) ReadSearch(*node, sweep, faults);
  }

 private:
  void Add(const yaml::Place& place, std::string message) { faults.push_back({place, std::move(message)}); }

  void ReadText(const yaml::YamlNode& node, std::string_view name, std::string& to) {
    if (node.scalar.is_string()) {
      to = node.scalar.get<std::string>();
    } else {
      Add(node.place, fmt::format("{} must be text, not {}", name, yaml::Describe(node)));
    }
  }

  void ReadName(const yaml::YamlNode& node) {
    ReadText(node, "name", sweep.name);
    const bool plain = PrintableLine(sweep.name) == sweep.name;
    if (node.scalar.is_string() && (sweep.name.empty() || sweep.name.size() > 200 || !plain)) {
      Add(node.place, "name must be one line of 1 to 200 characters, without controls");
    }
  }

  void ReadDefaults(const yaml::YamlNode& node) {
    sweep.defaults_place = node.place;
    yaml::Names known = sweep.trainers.field_names();
    known.emplace_back("checkpoint");
    for (const auto& [field, value] : FieldEntries(node, "defaults", sweep.trainers, faults, known)) {
      if (field == nullptr) {
        ReadCheckpoint(*value);
      } else if (auto assignment = ReadAssignment(*field, *value, sweep.trainers, faults)) {
        if (const Assignment* other = DefaultOf(assignment->field)) {  // only global_batch sets another field
          Add(value->place,
              fmt::format("global_batch sets grad_accumulation, which is given too (line {})", other->place.line));
        }
        sweep.defaults.push_back(std::move(*assignment));
      }
    }
  }

  const Assignment* DefaultOf(const Field* field) const {
    const auto it = std::ranges::find(sweep.defaults, field, &Assignment::field);
    return it == sweep.defaults.end() ? nullptr : &*it;
  }

  // Reads a value that all points share, from a section other than defaults.
  void ReadShared(const Field& field, const yaml::YamlNode& value) {
    auto assignment = ReadAssignment(field, value, sweep.trainers, faults);
    if (!assignment) return;
    if (const Assignment* given = DefaultOf(&field)) {
      Add(value.place, fmt::format("{} is given in defaults too (line {})", field.name, given->place.line));
    } else {
      sweep.defaults.push_back(std::move(*assignment));
    }
  }

  void ReadMeasure(const yaml::YamlNode& node) {
    static const yaml::Names kKnown = {"warmup_steps",     "steps",   "repeats",       "min_steps",
                                       "refuse_throttled", "seconds", "warmup_seconds"};
    if (node.kind != yaml::YamlNode::Kind::kMap)
      return Add(node.place, yaml::NotAMapping("measure is a mapping of fields", node));
    for (const auto& [name, value] : yaml::Entries(node, "field", kKnown, faults)) {
      const Field* field = FindField(name);
      ReadShared(field != nullptr ? *field : *FindField("measure." + name), *value);
    }
  }

  void ReadCheckpoint(const yaml::YamlNode& node) {
    static const yaml::Names kKnown = {"dir", "every_steps", "keep"};
    if (node.kind != yaml::YamlNode::Kind::kMap) {
      Add(node.place, fmt::format("checkpoint is a mapping of dir, every_steps and keep, not {} (activation "
                                  "checkpointing is the field checkpointing)",
                                  yaml::Describe(node)));
      return;
    }
    for (const auto& [key, value] : yaml::Entries(node, "setting of checkpoint", kKnown, faults)) {
      ReadShared(*FindField("checkpoint." + key), *value);
    }
  }

  void ReadInit(const yaml::YamlNode& node) {
    static const yaml::Names kKnown = {"from"};
    if (node.kind != yaml::YamlNode::Kind::kMap) {
      return Add(node.place, fmt::format("init is a mapping: {{from: seed}}, or {{from: a folder of weights}}, not {}",
                                         yaml::Describe(node)));
    }
    for (const auto& [key, value] : yaml::Entries(node, "key of init", kKnown, faults)) {
      ReadShared(*FindField("init_from"), *value);
    }
  }

  Axis TakeAxis(const Field& field, const yaml::YamlNode& node) {
    Axis axis = ReadAxis(field, node, sweep.trainers, faults);
    values_.Add(axis.size(), node.place);
    return axis;
  }

  // Whether the field is an axis, or global_batch and the axis is what that sets.
  bool IsAxis(const Field* field) const { return AxisOf(field) != nullptr; }

  const Assignment* AxisOf(const Field* field) const {
    if (field == &GlobalBatch()) field = FindField("grad_accumulation");
    for (const AxisGroup& group : sweep.groups) {
      for (const Axis& axis : group) {
        if (axis.front().field == field) return &axis.front();
      }
    }
    return nullptr;
  }

  // Adds a fault if another name has set the same axis, which only grad_accumulation and global_batch can.
  void RefuseSameAxis(const Field* field, const yaml::YamlNode& node) {
    const Assignment* axis = AxisOf(field);
    if (axis == nullptr) return;
    const std::string_view written = axis->is_global_batch ? GlobalBatch().name : axis->field->name;
    Add(node.place, written == field->name
                        ? fmt::format("{} is an axis already", field->name)
                        : fmt::format("{} is an axis already, as {}: give one of the two", field->name, written));
  }

  void ReadMatrix(const yaml::YamlNode& node) {
    for (const auto& [field, values] : FieldEntries(node, "matrix", sweep.trainers, faults)) {
      RefuseSameAxis(field, *values);
      Axis axis = TakeAxis(*field, *values);
      if (!axis.empty()) sweep.groups.push_back({std::move(axis)});
    }
  }

  void ReadZip(const yaml::YamlNode& node) {
    for (const yaml::YamlNode* map : yaml::Mappings(node, "zip", /*lone=*/true, faults, "fields")) {
      AxisGroup group;
      const size_t faults_before = faults.size();
      for (const auto& [field, values] : FieldEntries(*map, "a zip group", sweep.trainers, faults)) {
        RefuseSameAxis(field, *values);
        Axis axis = TakeAxis(*field, *values);
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

  // The entries of `exclude`: mappings, or formulas.
  std::vector<const yaml::YamlNode*> ConditionsOf(const yaml::YamlNode& node) {
    std::vector<const yaml::YamlNode*> entries;
    yaml::YamlNode others = node;
    std::erase_if(others.items, IsFormula);
    if (others.items.size() == node.items.size())
      return yaml::Mappings(node, "exclude", /*lone=*/false, faults, "fields");
    yaml::Mappings(others, "exclude", /*lone=*/false, faults, "fields");
    for (const yaml::YamlNode& item : node.items) {
      if (IsFormula(item) || (item.kind == yaml::YamlNode::Kind::kMap && !item.entries.empty()))
        entries.push_back(&item);
    }
    return entries;
  }

  void ReadExclude(const yaml::YamlNode& node) {
    for (const yaml::YamlNode* map : ConditionsOf(node)) {
      const size_t faults_before = faults.size();
      Exclude exclude{ReadConditions(*map, "exclude", sweep.trainers, values_, faults), map->place};
      if (faults.size() == faults_before) sweep.exclude.push_back(std::move(exclude));
    }
  }

  void ReadInclude(const yaml::YamlNode& node) {
    for (const yaml::YamlNode* map : yaml::Mappings(node, "include", /*lone=*/false, faults, "fields")) {
      const size_t faults_before = faults.size();
      std::vector<Axis> additions;
      std::vector<Condition> conditions;
      size_t values = 0;  // of one entry
      for (const auto& [field, value] : FieldEntries(*map, "include", sweep.trainers, faults)) {
        if (!IsAxis(field)) {
          values += additions.emplace_back(TakeAxis(*field, *value)).size();
        } else if (auto condition = ReadCondition(*field, *value, sweep.trainers, faults)) {
          values += 1;
          values_.Add(condition->values.size(), condition->place);
          conditions.push_back(*std::move(condition));
        }
      }
      if (faults.size() != faults_before) continue;
      std::vector<Include> entries = {Include{{}, {}, map->place}};  // one for each combination of its axes' values
      for (const Condition& condition : conditions) {
        std::vector<Include> product;
        for (const Include& entry : entries) {
          for (const FieldValue& one : condition.values) {
            values_.Add(values, condition.place);
            product.push_back(entry);
            product.back().conditions.push_back(
                {condition.field, condition.op, {one}, condition.than, condition.place});
          }
        }
        entries = std::move(product);
      }
      for (Include& entry : entries) entry.additions = additions;
      std::move(entries.begin(), entries.end(), std::back_inserter(sweep.include));
    }
  }

  void ReadOnly(const yaml::YamlNode& node) {
    sweep.selected_place = node.place;
    sweep.selected = ReadConditions(node, "only", sweep.trainers, values_, faults);
  }

  // Rules cannot depend on a batch size that follows from memory, because the memory may follow from rules. Nor can
  // values.
  void RefuseToCompareLargest() {
    if (!HasLargestBatch(sweep)) return;
    const Field* const batch_size = FindField("batch_size");
    ForEachAssignment(sweep, [&](const Assignment& assignment) {
      if (!assignment.formula || !assignment.formula->GoesBy(*batch_size)) return;
      Add(assignment.place, fmt::format("the sweep has batch_size: max, which stands for what fits: {} cannot be "
                                        "computed from it",
                                        assignment.is_global_batch ? "global_batch" : assignment.field->name));
    });
    const auto refuse = [&](const std::vector<Condition>& conditions) {
      for (const Condition& condition : conditions) {
        const auto is_batch = [&](const Field* field) { return field == batch_size || field == &GlobalBatch(); };
        const bool goes_by_it = condition.formula && condition.formula->GoesBy(*batch_size);
        if (!goes_by_it && !is_batch(condition.field) && !is_batch(condition.than)) continue;
        Add(condition.place,
            "the sweep has batch_size: max, which stands for what fits: no condition can depend on it");
      }
    };
    for (const Exclude& exclude : sweep.exclude) refuse(exclude.conditions);
    for (const Include& include : sweep.include) refuse(include.conditions);
    for (const LaunchRule& rule : sweep.rules) refuse(rule.when);
    refuse(sweep.selected);
  }

  // One command, or a list of them.
  void ReadSetup(const yaml::YamlNode& node) {
    const bool is_one = std::ranges::any_of(node.items, [](const yaml::YamlNode& item) { return item.items.empty(); });
    if (node.kind != yaml::YamlNode::Kind::kList || node.items.empty()) {
      return Add(node.place,
                 fmt::format("setup is a list of commands, such as [[python3, -m, venv, venv]], not {}",
                             node.items.empty() && node.kind == yaml::YamlNode::Kind::kList ? "an empty one"
                                                                                            : yaml::Describe(node)));
    }
    if (is_one) return ReadCommand(node);
    for (const yaml::YamlNode& item : node.items) ReadCommand(item);
  }

  void ReadCommand(const yaml::YamlNode& node) {
    std::vector<std::string> argv;
    for (const yaml::YamlNode& item : node.items) {
      if (!item.scalar.is_string() || item.scalar.get_ref<const std::string&>().find('\0') != std::string::npos) {
        return Add(item.place,
                   fmt::format("a command of setup is a list of texts: a program, then its arguments, and not "
                               "{}; write a number in quotes, and a shell's text as [bash, -c, 'text']",
                               yaml::Describe(item)));
      }
      argv.push_back(item.scalar.get<std::string>());
    }
    if (argv.front().empty()) return Add(node.place, "a command of setup begins with a program");
    if (argv.size() == 1 && argv.front().find(' ') != std::string::npos) {
      return Add(node.place, "a command of setup is a list: a program, then its arguments, each a word of its own");
    }
    if (const std::string_view word = ShellWordOf(argv); !word.empty()) return Add(node.place, NotForAShell(word));
    sweep.setup.push_back(std::move(argv));
  }

  void ReadReports(const yaml::YamlNode& node) {
    std::vector<yaml::YamlNode> alone;
    if (node.kind == yaml::YamlNode::Kind::kScalar) alone.push_back(node);
    if (node.kind == yaml::YamlNode::Kind::kMap) Add(node.place, "report is a list of names, not a mapping");
    for (const yaml::YamlNode& item : node.kind == yaml::YamlNode::Kind::kList ? node.items : alone) {
      if (!item.scalar.is_string() || !IsPlainName(item.scalar.get<std::string>())) {
        Add(item.place, "a report's name is of letters, digits, - and _, not " + yaml::Describe(item));
      } else {
        sweep.reports.push_back(item.scalar.get<std::string>());
      }
    }
  }

  ValueCount values_;
};

std::vector<std::filesystem::path> FoldersFor(const std::filesystem::path& file,
                                              const std::vector<std::filesystem::path>& trainers) {
  const std::filesystem::path folder = file.parent_path();
  std::vector<std::filesystem::path> own = {folder.empty() ? "." : folder, folder / "trainers"};
  own.insert(own.end(), trainers.begin(), trainers.end());
  return trainers::TrainerFolders(std::move(own));
}

std::string ReadSweepFile(const std::filesystem::path& file) {
  std::optional<std::string> text = ReadFileIfThere(file, yaml::YamlLimits().bytes + 1);
  if (!text) throw Error(ErrorKind::kInvalidInput, fmt::format("there is no file {}", file.string()));
  return std::move(*text);
}

}  // namespace

Sweep LoadSweep(const std::filesystem::path& file, const std::vector<std::filesystem::path>& trainers,
                const Given& given) {
  return ParseSweep(ReadSweepFile(file), file, trainers, given);
}

std::string LoadSweepName(const std::filesystem::path& file) {
  const std::string text = ReadSweepFile(file);
  try {
    for (const auto& [key, value] : yaml::ParseYaml(text).entries) {
      if (key.scalar == "name" && value.scalar.is_string()) return value.scalar.get<std::string>();
    }
  } catch (const yaml::Fault& fault) {
    yaml::ThrowFaults(file, {fault}, kSweepHint);
  }
  return ParseSweep(text, file).name;  // it reports what is wrong
}

Sweep ParseSweep(std::string_view text, const std::filesystem::path& file,
                 const std::vector<std::filesystem::path>& trainers, const Given& given) {
  SweepReader reader;
  try {
    yaml::YamlNode root = yaml::ParseYaml(text);
    AddGiven(given, root);
    const bool has_model_file = ReplaceModelFiles(root, file.parent_path(), reader.faults);
    reader.sweep.text = has_model_file ? SweepText(root) : TextWithGiven(text, given, root);
    reader.ReadFile(std::move(root), FoldersFor(file, trainers));
    if (!reader.faults.empty()) {
      // Shows what else is wrong, so that you can fix everything at once. Leaves out faults that may only follow from
      // those found already.
      for (const Impossible& impossible :
           Walk(reader.sweep, [](const RunSpec&, const std::vector<size_t>&) {}).impossible) {
        if (impossible.attributed) reader.faults.push_back(impossible.fault);
      }
    }
  } catch (const yaml::Fault& fault) {
    reader.faults.push_back(fault);
  }
  if (!reader.faults.empty()) yaml::ThrowFaults(file, std::move(reader.faults), kSweepHint);
  reader.sweep.file = file;
  return std::move(reader.sweep);
}

LaunchAndPrice ParseLaunchAndPrice(std::string_view text, const std::filesystem::path& file) {
  Sweep sweep;
  std::vector<yaml::Fault> faults;
  try {
    yaml::YamlNode root = yaml::ParseYaml(text);
    for (auto& [key, section] : root.entries) {
      if (key.scalar == "price") ReadPrice(section, sweep, faults);
      if (key.scalar != "launch") continue;
      std::erase_if(section.entries, [](const yaml::YamlEntry& entry) { return entry.key.scalar == "rules"; });
      ReadLaunch(section, sweep, faults);
    }
  } catch (const yaml::Fault& fault) {
    faults.push_back(fault);
  }
  if (!faults.empty()) yaml::ThrowFaults(file, std::move(faults), kSweepHint);
  return {std::move(sweep.launch), std::move(sweep.price)};
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
  for (const Assignment& assignment : sweep.defaults) {
    if (assignment.largest || assignment.formula) add(assignment.field);
  }
  return fields;
}

void ForEachAssignment(const Sweep& sweep, const std::function<void(const Assignment&)>& visit) {
  const auto visit_axes = [&](const std::vector<Axis>& axes) {
    for (const Axis& axis : axes) std::ranges::for_each(axis, visit);
  };
  std::ranges::for_each(sweep.defaults, visit);
  std::ranges::for_each(sweep.groups, visit_axes);
  for (const Include& include : sweep.include) visit_axes(include.additions);
}

bool HasLargestBatch(const Sweep& sweep) {
  bool has = false;
  ForEachAssignment(sweep, [&](const Assignment& assignment) { has = has || assignment.largest; });
  return has;
}

}  // namespace ridgeline::sweep
