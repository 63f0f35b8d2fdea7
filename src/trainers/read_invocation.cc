#include "trainers/invocation.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/command_words.h"
#include "base/error.h"
#include "base/text.h"
#include "run/consistency.h"
#include "run/families.h"
#include "run/presets.h"
#include "run/step_figures.h"
#include "trainers/requirements.h"
#include "yaml/common_mistakes.h"
#include "yaml/entries.h"

namespace ridgeline::trainers {
namespace fs = std::filesystem;
namespace {

bool IsAmong(const auto& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

constexpr size_t kMostItems = 1024;
constexpr size_t kMostItemBytes = 4096;
constexpr size_t kMostFileBytes = size_t{64} << 10;
constexpr size_t kMostFields = 64;
constexpr size_t kMostRequired = 64;
constexpr size_t kMostOtherwiseBytes = 256;
constexpr double kMostNumber = 9e15;

// Names that a template may use besides fields.
constexpr std::array<std::string_view, 22> kPlaceNames = {
    "nodes",         "node_rank",   "ranks_per_node",    "gpus_per_node",      "rank",           "local_rank",
    "world_size",    "master_addr", "master_port",       "output_dir",         "checkpoint_dir", "spec_file",
    "result_file",   "total_steps", "global_batch_size", "tokens_per_step",    "last_step",      "global_micro_batches",
    "data_parallel", "replicas",    "local_batch_size",  "per_rank_batch_size"};

constexpr std::array<std::pair<std::string_view, Processes>, 4> kProcesses = {{{"ours", Processes::kOurs},
                                                                               {"torchrun", Processes::kTorchrun},
                                                                               {"srun", Processes::kSrun},
                                                                               {"one", Processes::kOne}}};

// Returns a scalar as it was written; nothing if the node is none.
std::optional<std::string> ScalarText(const yaml::YamlNode& node) {
  if (node.kind != yaml::YamlNode::Kind::kScalar || node.scalar.is_null()) return std::nullopt;
  if (node.scalar.is_string()) return node.scalar.get<std::string>();
  return DumpJson(node.scalar);
}

std::vector<const Template*> TemplatesOf(const Invocation& invocation) {
  std::vector<const Template*> all;
  for (const Template& each : invocation.command) all.push_back(&each);
  for (const Template& each : invocation.resume) all.push_back(&each);
  for (const auto& [name, each] : invocation.environment) all.push_back(&each);
  for (const auto& [name, each] : invocation.files) all.push_back(&each);
  if (invocation.directory) all.push_back(&*invocation.directory);
  if (invocation.result) all.push_back(&*invocation.result);
  return all;
}

std::set<std::string> NamesUsed(const Invocation& invocation) {
  std::set<std::string> used;
  for (const Template* each : TemplatesOf(invocation)) {
    for (std::string& name : each->Names()) used.insert(std::move(name));
  }
  if (used.contains("global_batch_size") || used.contains("tokens_per_step")) {
    used.insert({"batch_size", "grad_accumulation", "ranks"});
  }
  if (used.contains("tokens_per_step")) used.insert("seq_length");
  if (used.contains("global_micro_batches")) used.insert({"grad_accumulation", "ranks"});
  if (used.contains("local_batch_size")) used.insert({"batch_size", "grad_accumulation"});
  if (used.contains("per_rank_batch_size")) used.insert({"batch_size", "ranks"});
  if (used.contains("data_parallel")) used.insert("ranks");
  if (used.contains("replicas")) used.insert({"ranks", "shard", "shard_ranks"});
  if (invocation.processes != Processes::kOne) used.insert("ranks");
  return used;
}

class InvocationReader {
 public:
  explicit InvocationReader(std::vector<yaml::Fault>& faults, Invocation known = {})
      : invocation_(std::move(known)), faults_(faults) {}

  Invocation Read(const std::map<std::string, const yaml::YamlNode*>& entries) {
    const auto entry = [&](const char* key) -> const yaml::YamlNode* {
      const auto it = entries.find(key);
      return it == entries.end() ? nullptr : it->second;
    };
    // Fields come first, so that the templates may name them.
    if (const yaml::YamlNode* node = entry("fields")) ReadFields(*node);
    invocation_.command = ReadArguments(*entry("command"), "command");
    RefuseShellWords(*entry("command"));
    if (const yaml::YamlNode* node = entry("directory")) {
      invocation_.directory = ReadTemplate(*node, "directory", Quoting::kNone, kMostItemBytes);
    }
    if (const yaml::YamlNode* node = entry("processes")) ReadProcesses(*node);
    if (const yaml::YamlNode* node = entry("env")) ReadEnvironment(*node);
    if (const yaml::YamlNode* node = entry("files")) ReadFiles(*node);
    if (const yaml::YamlNode* node = entry("supports")) ReadSupports(*node);
    if (const yaml::YamlNode* node = entry("data_parallel")) ReadDataParallel(*node);
    if (const yaml::YamlNode* node = entry("require")) ReadRequire(*node);
    if (const yaml::YamlNode* node = entry("resume")) invocation_.resume = ReadArguments(*node, "resume");
    if (const yaml::YamlNode* node = entry("file")) {
      invocation_.result = ReadTemplate(*node, "file", Quoting::kNone, kMostItemBytes);
    }
    invocation_.used = NamesUsed(invocation_);
    return std::move(invocation_);
  }

  std::optional<Expression> ReadExpression(const yaml::YamlNode& node, std::string_view what, bool is_condition) {
    const std::optional<std::string> text = ScalarText(node);
    if (!text) {
      Wrong(node, fmt::format("{} is text, not {}", what,
                              node.kind == yaml::YamlNode::Kind::kMap ? "a mapping: put it into quotes"
                                                                      : yaml::Describe(node)));
      return std::nullopt;
    }
    try {
      Expression read(*text);
      for (const std::string& name : read.names()) {
        const bool known = invocation_.FindOwn(name) != nullptr || IsAmong(FieldNamesOfPoints(), name) ||
                           (is_condition && name == "data_parallel");
        if (known) continue;
        yaml::Names names = FieldNamesOfPoints();
        for (const auto& own : invocation_.fields) names.push_back(own->name);
        const std::string shown = ShortenToBytes(name, 80);
        Wrong(node, fmt::format("there is no field '{}'{}", shown, DidYouMean(shown, names)));
      }
      if (read.is_condition() == is_condition) return read;
      Wrong(node, is_condition
                      ? fmt::format("{} is a condition, such as \"{{{{heads}}}} % {{{{tensor_parallel}}}} == 0\"", what)
                      : fmt::format("{} is a number, such as \"{{{{ranks}}}} / {{{{tensor_parallel}}}}\"", what));
    } catch (const Error& e) {
      Wrong(node, fmt::format("{}: {}", what, e.message()));
    }
    return std::nullopt;
  }

 private:
  void Wrong(const yaml::YamlNode& node, std::string message) { faults_.push_back({node.place, std::move(message)}); }

  std::optional<Template> ReadTemplate(const yaml::YamlNode& node, std::string_view what, Quoting quoting,
                                       size_t most) {
    const std::optional<std::string> text = ScalarText(node);
    if (!text || text->find('\0') != std::string::npos || text->size() > most) {
      Wrong(node, fmt::format("{} is text of at most {} bytes, not {}", what, most,
                              text                                      ? "this"
                              : node.kind == yaml::YamlNode::Kind::kMap ? "a mapping: put it into quotes"
                                                                        : yaml::Describe(node)));
      return std::nullopt;
    }
    try {
      Template read(*text, quoting);
      for (const std::string& name : read.Names()) {
        if (!IsKnown(name)) Wrong(node, Unknown(name));
      }
      return read;
    } catch (const Error& e) {
      Wrong(node, e.message());
      return std::nullopt;
    }
  }

  bool IsKnown(std::string_view name) const {
    const Field* field = FindField(name);
    return invocation_.FindOwn(name) != nullptr || IsAmong(kPlaceNames, name) || field != nullptr ||
           (name.starts_with(kVariablePrefix) && name.size() > kVariablePrefix.size());
  }

  std::string Unknown(const std::string& name) const {
    yaml::Names names(kPlaceNames.begin(), kPlaceNames.end());
    for (const Field& field : Fields()) names.emplace_back(field.name);
    for (const auto& own : invocation_.fields) names.push_back(own->name);
    const std::string shown = ShortenToBytes(name, 80);
    const std::string near = DidYouMean(shown, names);
    if (!near.empty()) return fmt::format("there is no '{}'{}", shown, near);
    return fmt::format(
        "there is no '{}': there are fields (`ridgeline plan --fields`), the definition's own, {} and "
        "env.NAME",
        shown, Join(yaml::Names(kPlaceNames.begin(), kPlaceNames.end()), ", "));
  }

  std::vector<Template> ReadArguments(const yaml::YamlNode& node, const char* what) {
    std::vector<Template> arguments;
    if (node.kind != yaml::YamlNode::Kind::kList || node.items.empty() || node.items.size() > kMostItems) {
      Wrong(node, fmt::format("{} is a list of 1 to {} arguments, not {}", what, kMostItems, yaml::Describe(node)));
      return arguments;
    }
    for (const yaml::YamlNode& item : node.items) {
      auto read = ReadTemplate(item, fmt::format("an argument of {}", what), Quoting::kNone, kMostItemBytes);
      if (read) arguments.push_back(*std::move(read));
    }
    return arguments;
  }

  void RefuseShellWords(const yaml::YamlNode& command) {
    std::vector<std::string> words;
    for (const yaml::YamlNode& item : command.items) words.push_back(ScalarText(item).value_or(""));
    if (const std::string_view word = ShellWordOf(words); !word.empty()) Wrong(command, NotForAShell(word));
  }

  void ReadProcesses(const yaml::YamlNode& node) {
    const std::string text = ScalarText(node).value_or("");
    const auto* found =
        std::find_if(kProcesses.begin(), kProcesses.end(), [&](const auto& entry) { return entry.first == text; });
    if (found == kProcesses.end()) {
      Wrong(node, "processes is ours, torchrun, srun or one, not " + yaml::Describe(node));
    } else {
      invocation_.processes = found->second;
    }
  }

  std::vector<yaml::Entry> Map(const yaml::YamlNode& node, const char* what, const char* of) {
    if (node.kind == yaml::YamlNode::Kind::kMap) return yaml::Entries(node, of, {}, faults_);
    Wrong(node, yaml::NotAMapping(what, node));
    return {};
  }

  void ReadEnvironment(const yaml::YamlNode& node) {
    for (const auto& [name, value] : Map(node, "env is a mapping of variables", "variable")) {
      if (name.empty() || name.find_first_of(std::string("=\0", 2)) != std::string::npos) {
        Wrong(*value, "a variable's name has no '=' and is not empty");
      } else if (auto read = ReadTemplate(*value, "a variable", Quoting::kNone, kMostItemBytes)) {
        invocation_.environment.emplace(name, *std::move(read));
      }
    }
  }

  void ReadFiles(const yaml::YamlNode& node) {
    static const yaml::Names kFormats = {".toml", ".yaml", ".yml", ".json", ".py"};
    for (const auto& [name, value] : Map(node, "files is a mapping of names to contents", "file")) {
      const bool plain = IsFileName(name);
      if (!plain || !IsAmong(kFormats, fs::path(name).extension().string())) {
        Wrong(*value, fmt::format("'{}' cannot be a file here: a name has letters, digits, '-', '_' and '.', and ends "
                                  "with {}, which decides how values are quoted",
                                  ShortenToBytes(name, 80), Join(kFormats, ", ")));
        continue;
      }
      const Quoting quoting = name.ends_with(".py") ? Quoting::kPython : Quoting::kQuoted;
      if (auto read = ReadTemplate(*value, "a file", quoting, kMostFileBytes)) {
        invocation_.files.emplace(name, *std::move(read));
      }
    }
  }

  void ReadSupports(const yaml::YamlNode& node) {
    for (const auto& [name, value] : Map(node, "supports is a mapping of fields to the values it takes", "field")) {
      const Field* field = FindField(name);
      if (field == nullptr || !IsAmong(FieldNamesOfPoints(), name)) {
        Wrong(*value, fmt::format("there is no field '{}'{}", ShortenToBytes(name, 80),
                                  DidYouMean(name, FieldNamesOfPoints())));
        continue;
      }
      std::vector<std::string> texts;
      if (ScalarText(*value) != "any") {
        std::vector<yaml::YamlNode> alone;
        if (value->kind == yaml::YamlNode::Kind::kScalar) alone.push_back(*value);
        for (const yaml::YamlNode& item : value->kind == yaml::YamlNode::Kind::kList ? value->items : alone) {
          if (auto text = ReadSupported(*field, item)) texts.push_back(*std::move(text));
        }
        if (texts.empty()) Wrong(*value, fmt::format("supports: {} is a list of values, or any", name));
      }
      invocation_.supports[name] = std::move(texts);
    }
  }

  void ReadDataParallel(const yaml::YamlNode& node) {
    invocation_.data_parallel = ReadExpression(node, "data_parallel", /*is_condition=*/false);
  }

  // Each item is a condition, or {if: CONDITION, else: the message if it does not hold}.
  void ReadRequire(const yaml::YamlNode& node) {
    static const yaml::Names kKnown = {"if", "else"};
    if (node.kind != yaml::YamlNode::Kind::kList || node.items.empty() || node.items.size() > kMostRequired) {
      return Wrong(node,
                   fmt::format("require is a list of 1 to {} conditions, not {}", kMostRequired, yaml::Describe(node)));
    }
    for (const yaml::YamlNode& item : node.items) {
      const yaml::YamlNode* condition = &item;
      std::string otherwise;
      if (item.kind == yaml::YamlNode::Kind::kMap) {
        condition = nullptr;
        for (const auto& [key, value] : yaml::Entries(item, "part of a requirement", kKnown, faults_)) {
          if (key == "if") condition = value;
          if (key == "else") otherwise = ScalarText(*value).value_or("");
        }
        if (condition == nullptr) {
          Wrong(item, "a requirement has `if`, a condition, and `else`, what is wrong if it does not hold");
          continue;
        }
        if (otherwise.size() > kMostOtherwiseBytes || otherwise.find('\n') != std::string::npos) {
          Wrong(item, fmt::format("else is one line of at most {} bytes", kMostOtherwiseBytes));
        }
      }
      if (auto read = ReadExpression(*condition, "a requirement", /*is_condition=*/true)) {
        invocation_.require.push_back({*std::move(read), otherwise});
      }
    }
  }

  std::optional<std::string> ReadSupported(const Field& field, const yaml::YamlNode& node) {
    if (field.name == "model") {
      const auto name = ScalarText(node);
      return name ? std::optional(std::string(MeantModel(*name))) : std::nullopt;
    }
    RunSpec scratch;
    if (const auto problems = SetField(scratch, field, node.scalar); !problems.empty()) {
      Wrong(node, problems.front().message);
      return std::nullopt;
    }
    return FieldText(scratch, field);
  }

  static const yaml::Names& FieldNamesOfPoints() {
    static const yaml::Names names = [] {
      yaml::Names all;
      for (const Field& field : Fields()) all.emplace_back(field.name);
      return all;
    }();
    return names;
  }

  void ReadFields(const yaml::YamlNode& node) {
    for (const auto& [name, value] : Map(node, "fields is a mapping of names to {type, default}", "field")) {
      const bool taken = FindField(name) != nullptr || IsAmong(kPlaceNames, name) || name == "version" ||
                         name == "own" || name == "checkpoint" || name == "measure";
      if (!IsFieldName(name) || taken) {
        Wrong(*value, taken ? fmt::format("'{}' has a meaning already: call it otherwise", name)
                            : "a field is called with small letters, digits and '_', a letter first");
        if (!taken) Declare(name);
      } else if (invocation_.fields.size() == kMostFields) {
        return Wrong(node, fmt::format("a trainer has at most {} fields of its own", kMostFields));
      } else if (!ReadField(name, *value)) {
        Declare(name);
      }
    }
  }

  // Declares a faulty field, so that templates that name it are not wrong, too.
  void Declare(const std::string& name) {
    auto own = std::make_shared<OwnField>();
    own->name = name;
    own->field = {own->name, OwnMember{std::string()}, own->help, own->choices, -kMostNumber, kMostNumber};
    invocation_.fields.push_back(std::move(own));
  }

  // Returns false if the node does not define a field.
  bool ReadField(const std::string& name, const yaml::YamlNode& node) {
    static const yaml::Names kKnown = {"type", "default", "choices", "min", "max", "help"};
    if (node.kind != yaml::YamlNode::Kind::kMap) {
      Wrong(node, yaml::NotAMapping("a field is {type, default}", node));
      return false;
    }
    std::map<std::string, const yaml::YamlNode*> map;
    for (const auto& [key, value] : yaml::Entries(node, "key of a field", kKnown, faults_)) map.emplace(key, value);
    auto own = std::make_shared<OwnField>();
    own->name = name;
    if (map.contains("help")) own->help = ScalarText(*map["help"]).value_or("");
    if (map.contains("choices")) own->choices = ReadChoices(*map["choices"]);
    const std::string type = map.contains("type") ? ScalarText(*map["type"]).value_or("") : "text";
    FieldValue standard;
    if (type == "boolean") {
      standard = false;
    } else if (type == "integer") {
      standard = int64_t{0};
    } else if (type == "number") {
      standard = 0.0;
    } else if (type == "text") {
      standard = std::string();
    } else {
      Wrong(*map["type"], "type is boolean, integer, number or text");
      return false;
    }
    const double least = std::holds_alternative<int64_t>(standard) ? 0 : -kMostNumber;
    own->field = {own->name,    OwnMember{standard},      own->help,
                  own->choices, Limit(map, "min", least), Limit(map, "max", kMostNumber)};
    if (!map.contains("default")) {
      Wrong(node, fmt::format("{} has no default", name));
      return false;
    }
    RunSpec scratch;
    if (const auto problems = SetField(scratch, own->field, map["default"]->scalar); !problems.empty()) {
      Wrong(*map["default"], problems.front().message);
    }
    own->field.member = OwnMember{ValueOf(scratch, own->field)};
    invocation_.fields.push_back(std::move(own));
    return true;
  }

  std::string ReadChoices(const yaml::YamlNode& node) {
    std::vector<std::string> choices;
    for (const yaml::YamlNode& item : node.items) {
      const auto text = ScalarText(item);
      if (!text || text->empty() || text->find('|') != std::string::npos) {
        Wrong(item, "a choice is text without '|', and not empty");
      } else {
        choices.push_back(*text);
      }
    }
    if (choices.empty()) Wrong(node, "choices is a list of values");
    return Join(choices, "|");
  }

  double Limit(const std::map<std::string, const yaml::YamlNode*>& map, const char* key, double standard) {
    const auto it = map.find(key);
    if (it == map.end()) return standard;
    if (it->second->scalar.is_number()) return it->second->scalar.get<double>();
    Wrong(*it->second, fmt::format("{} is a number", key));
    return standard;
  }

  Invocation invocation_;
  std::vector<yaml::Fault>& faults_;
};

}  // namespace

std::optional<Expression> ReadCondition(const yaml::YamlNode& node, std::string_view what, const Invocation& invocation,
                                        std::vector<yaml::Fault>& faults) {
  return InvocationReader(faults, invocation).ReadExpression(node, what, /*is_condition=*/true);
}

std::optional<Invocation> ReadInvocation(const std::map<std::string, const yaml::YamlNode*>& entries,
                                         std::vector<yaml::Fault>& faults) {
  if (entries.contains("command")) return InvocationReader(faults).Read(entries);
  for (const std::string_view key : kInvocationKeys) {
    const auto it = entries.find(std::string(key));
    if (it == entries.end()) continue;
    faults.push_back({it->second->place, fmt::format("{} goes with a command, and there is none", key)});
  }
  return std::nullopt;
}

}  // namespace ridgeline::trainers
