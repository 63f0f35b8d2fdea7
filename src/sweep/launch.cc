#include "sweep/launch.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/command_words.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "run/measurement.h"
#include "run/result.h"
#include "run/spec.h"
#include "sweep/entries.h"
#include "sweep/expand.h"
#include "sweep/job_description.h"
#include "yaml/common_mistakes.h"
#include "yaml/units.h"

namespace ridgeline::sweep {
namespace {

// Numbers that may differ from point to point. A rule replaces the earlier value.
constexpr std::array<std::pair<std::string_view, int64_t Launch::*>, 7> kNumbers = {
    {{"nodes", &Launch::nodes},
     {"ranks_per_node", &Launch::ranks_per_node},
     {"cpus", &Launch::cpus},
     {"memory_limit", &Launch::memory_limit_bytes},
     {"time_limit", &Launch::time_limit_s},
     {"meet_limit", &Launch::meet_limit_s},
     {"save_time", &Launch::save_time_s}}};

// The launcher's own settings that change figures: how much of a machine a point uses, how it is bound to it, and which
// software it runs in. Where it runs (a partition, a selector of nodes) is not among them, because its result names the
// machine.
constexpr std::array kShape = {"cpus",          "cpu",     "gpus",    "gres",          "nodes",
                               "ntasks",        "efa",     "devices", "hugepages",     "gpu_bind",
                               "exclusive",     "srun",    "image",   "trainer_image", "container",
                               "shared_memory", "modules", "prolog",  "env",           "instance_type"};

const yaml::Names& OfPoints() {
  static const yaml::Names names = [] {
    yaml::Names result = {"environment", "keep_logs"};
    for (const auto& [name, member] : kNumbers) result.emplace_back(name);
    return result;
  }();
  return names;
}

const yaml::Names& OfTheSweep() {
  static const yaml::Names names = {"launcher", "bundle",        "max_parallel", "launcher_timeout",
                                    "retry",    "give_up_after", "trainer",      "rules"};
  return names;
}

bool Contains(const yaml::Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

class LaunchReader {
 public:
  LaunchReader(Sweep& sweep, std::vector<yaml::Fault>& faults) : sweep_(sweep), faults_(faults) {}

  void Read(const yaml::YamlNode& node) {
    if (node.kind != yaml::YamlNode::Kind::kMap) return Add(node.place, yaml::NotAMapping("launch is a mapping", node));
    sweep_.launch.place = node.place;
    const std::vector<yaml::Entry> entries = yaml::Entries(node, "launch setting", {}, faults_);
    // The launcher first: its name decides which mapping is the launcher's.
    for (const auto& [name, value] : entries) {
      if (name == "launcher") ReadLauncher(*value);
    }
    for (const auto& [name, value] : entries) {
      if (name == "rules") {
        ReadRules(*value);
        continue;
      }
      if (name != "launcher" && !ReadOfTheSweep(name, *value)) ReadOfPoints(name, *value, sweep_.launch);
      sweep_.launch.config[name] = yaml::ToJsonValue(*value, faults_);
    }
  }

  // Reads `set` of a rule.
  void ReadSet(const yaml::YamlNode& node, Launch& to) {
    if (node.kind != yaml::YamlNode::Kind::kMap || node.entries.empty()) {
      return Add(node.place,
                 "set is a mapping of launch settings, not " +
                     (node.kind == yaml::YamlNode::Kind::kMap ? std::string("an empty one") : yaml::Describe(node)));
    }
    for (const auto& [name, value] : yaml::Entries(node, "launch setting", {}, faults_)) {
      if (Contains(OfTheSweep(), name)) {
        Add(value->place, fmt::format("{} is the same for all points of a sweep; a rule sets {}, and settings of the "
                                      "launcher",
                                      name, Join(OfPoints(), ", ")));
        continue;
      }
      ReadOfPoints(name, *value, to);
      to.config[name] = yaml::ToJsonValue(*value, faults_);
    }
  }

 private:
  void Add(const yaml::Place& place, std::string message) { faults_.push_back({place, std::move(message)}); }

  void ReadLauncher(const yaml::YamlNode& node) {
    if (!node.scalar.is_string()) return Add(node.place, "launcher must be text, not " + yaml::Describe(node));
    sweep_.launch.launcher = node.scalar.get<std::string>();
    if (!IsPlainName(sweep_.launch.launcher)) Add(node.place, "a launcher's name is of letters, digits, - and _");
  }

  // Returns false if it is none of these settings.
  bool ReadOfTheSweep(const std::string& name, const yaml::YamlNode& value) {
    if (name == "bundle") {
      ReadBundle(value);
    } else if (name == "max_parallel") {
      ReadWhole(value, name, 1, 100'000, sweep_.launch.max_parallel, faults_);
    } else if (name == "launcher_timeout") {
      ReadDuration(name, "15m or 2h", value, sweep_.launch.launcher_timeout_s);
    } else if (name == "give_up_after") {
      ReadWhole(value, name, 0, 1'000'000, sweep_.launch.give_up_after, faults_);
    } else if (name == "trainer") {
      ReadTrainer(value);
    } else if (name == "retry") {
      ReadRetries(value);
    } else {
      return false;
    }
    return true;
  }

  // Reads settings that a rule may set, too.
  void ReadOfPoints(const std::string& name, const yaml::YamlNode& value, Launch& to) {
    to.places[name] = value.place;
    for (const yaml::YamlEntry& own : value.entries) {
      if (own.key.scalar.is_string()) to.places[name + ": " + own.key.scalar.get<std::string>()] = own.value.place;
    }
    if (name == "nodes") {
      ReadWhole(value, name, 1, 65'536, to.nodes, faults_);
    } else if (name == "ranks_per_node") {
      ReadWhole(value, name, 1, 4096, to.ranks_per_node, faults_);
    } else if (name == "cpus") {
      ReadWhole(value, name, 1, 4096, to.cpus, faults_);
    } else if (name == "memory_limit") {
      ReadMemoryLimit(value, to);
    } else if (name == "time_limit") {
      ReadTimeLimit(value, to);
    } else if (name == "meet_limit") {
      ReadDuration(name, "90s or 10m", value, to.meet_limit_s);
    } else if (name == "save_time") {
      ReadDuration(name, "90s or 2m", value, to.save_time_s);
    } else if (name == "keep_logs") {
      if (!value.scalar.is_boolean()) Add(value.place, "keep_logs is true or false, not " + yaml::Describe(value));
      to.keep_logs = value.scalar.is_boolean() && value.scalar.get<bool>();
    } else if (name == "environment") {
      ReadEnvironment(value, to);
    } else {
      RequireMappingOfALauncher(name, value);
    }
  }

  void ReadMemoryLimit(const yaml::YamlNode& node, Launch& to) {
    const auto bytes = yaml::ReadBytes(node);
    if (!bytes) {
      Add(node.place,
          "memory_limit is a size such as 8GB or 512MiB, not " + yaml::Describe(node) + yaml::MostBytesNote(node));
    } else if (*bytes < kLeastMemoryBytes) {
      Add(node.place,
          fmt::format(
              "memory_limit is {} bytes, which is too little for anything: give the number a unit, such as {}GB",
              *bytes, yaml::Describe(node)));
    }
    to.memory_limit_bytes = bytes.value_or(0);
  }

  void ReadTimeLimit(const yaml::YamlNode& value, Launch& to) {
    to.time_limit_auto = value.scalar == "auto";
    if (!to.time_limit_auto) ReadDuration("time_limit", "90s, 10m or 2h, or auto", value, to.time_limit_s);
  }

  void ReadDuration(const std::string& name, const char* examples, const yaml::YamlNode& value, int64_t& to) {
    const auto seconds = yaml::ReadSeconds(value);
    if (!seconds) {
      Add(value.place, fmt::format("{} is a duration such as {}, not {}{}", name, examples, yaml::Describe(value),
                                   yaml::MostSecondsNote(value)));
    }
    to = seconds.value_or(0);
  }

  void ReadEnvironment(const yaml::YamlNode& node, Launch& to) {
    if (node.kind != yaml::YamlNode::Kind::kMap) {
      return Add(node.place, yaml::NotAMapping("environment is a mapping such as {OMP_NUM_THREADS: 4}", node));
    }
    for (const auto& [name, value] : yaml::Entries(node, "variable", {}, faults_)) {
      const bool plain = !name.empty() && std::isdigit(static_cast<unsigned char>(name.front())) == 0 &&
                         std::all_of(name.begin(), name.end(),
                                     [](unsigned char c) { return c == '_' || (c < 0x80 && std::isalnum(c) != 0); });
      if (!plain) Add(value->place, fmt::format("the name of a variable is of letters, digits and _, not '{}'", name));
      const Json& text = value->scalar;
      if (text.is_number_integer()) {
        to.environment[name] = text.dump();
      } else if (text.is_string() && text.get_ref<const std::string&>().find('\0') == std::string::npos) {
        to.environment[name] = text.get<std::string>();
      } else {
        Add(value->place, fmt::format("the variable {} must be text or a whole number, not {}; write it in quotes",
                                      name, yaml::Describe(*value)));
      }
    }
  }

  // Any other mapping holds the settings of the launcher with its name, which checks them itself.
  void RequireMappingOfALauncher(const std::string& name, const yaml::YamlNode& value) {
    if (name == "gpus") {
      Add(value.place, fmt::format("gpus belongs in the launcher's own mapping, such as slurm: {{gpus: {}}}",
                                   yaml::Describe(value)));
      return;
    }
    if (name == "start_limit") {
      Add(value.place,
          "start_limit, the time that a job may take to start, belongs under kubernetes:; meet_limit is the time that "
          "the ranks of a point may take to meet");
      return;
    }
    yaml::Names near_to = OfTheSweep();
    near_to.insert(near_to.end(), OfPoints().begin(), OfPoints().end());
    const yaml::Names known = near_to;
    near_to.push_back(sweep_.launch.launcher);
    const std::string meant = Nearest(name, near_to);
    if (value.kind == yaml::YamlNode::Kind::kMap && (meant.empty() || meant == name)) return;
    Add(value.place,
        fmt::format("unknown launch setting '{}'{}", name,
                    meant.empty() ? "; known are " + Join(known, ", ") + ", and a mapping named after the launcher"
                                  : DidYouMean(name, near_to)));
  }

  void ReadRules(const yaml::YamlNode& node) {
    static const yaml::Names kParts = {"when", "set"};
    for (const yaml::YamlNode* map : yaml::Mappings(node, "rules", /*lone=*/false, faults_, "when and set")) {
      LaunchRule rule{{}, {}, map->place};
      const yaml::YamlNode* when = nullptr;
      const yaml::YamlNode* set = nullptr;
      for (const auto& [name, value] : yaml::Entries(*map, "part of a rule", kParts, faults_)) {
        (name == "when" ? when : set) = value;
      }
      if (when == nullptr || set == nullptr) {
        Add(map->place, fmt::format("a rule has when and set; this one has no {}", when == nullptr ? "when" : "set"));
      }
      if (when != nullptr) rule.when = ReadConditions(*when, "when", sweep_.trainers, values_, faults_);
      if (when != nullptr && when->kind == yaml::YamlNode::Kind::kMap && when->entries.empty()) {
        Add(when->place, "when is empty: settings for every point belong under launch: itself");
      }
      if (set != nullptr) ReadSet(*set, rule.set);
      sweep_.rules.push_back(std::move(rule));
    }
  }

  void ReadTrainer(const yaml::YamlNode& node) {
    std::vector<yaml::YamlNode> alone;
    if (node.kind == yaml::YamlNode::Kind::kScalar) alone.push_back(node);
    auto& argv = sweep_.launch.trainer;
    for (const yaml::YamlNode& item : node.kind == yaml::YamlNode::Kind::kList ? node.items : alone) {
      if (item.scalar.is_string() && item.scalar.get_ref<const std::string&>().find('\0') == std::string::npos) {
        argv.push_back(item.scalar.get<std::string>());
      } else {
        Add(item.place, "an argument of trainer must be text, not " + yaml::Describe(item));
      }
    }
    if (node.kind == yaml::YamlNode::Kind::kMap || (node.kind == yaml::YamlNode::Kind::kList && node.items.empty()) ||
        (!argv.empty() && argv.front().empty())) {
      Add(node.place, "trainer is a list: a program, then its arguments");
    } else if (const std::string_view word = ShellWordOf(argv); !word.empty()) {
      Add(node.place, NotForAShell(word));
    } else if (const auto text = WordsOf(argv).shell_text; text && argv[*text].find("$@") == std::string::npos) {
      // The paths of the spec and the result are passed as arguments.
      Add(node.place, "the shell's text does not pass its arguments on: end it with the program and \"$@\"");
    }
  }

  // Reads "20" as points, and "20m" as a time.
  void ReadBundle(const yaml::YamlNode& node) {
    const auto seconds = yaml::ReadSeconds(node);
    if (node.scalar.is_string() && seconds) {
      sweep_.launch.bundle_s = *seconds;
    } else if (node.scalar.is_number_integer()) {
      ReadWhole(node, "bundle", 1, 100'000, sweep_.launch.bundle, faults_);
    } else {
      Add(node.place, "bundle is a number of points, or a duration such as 20m, not " + yaml::Describe(node));
    }
  }

  void ReadRetries(const yaml::YamlNode& node) {
    if (node.kind != yaml::YamlNode::Kind::kMap) {
      return Add(node.place, "retry is a mapping such as {preempted: 3, node: 2}, not " + yaml::Describe(node));
    }
    auto& retries = sweep_.launch.retries;
    for (const auto& [name, value] : yaml::Entries(node, "reason to retry for", ReasonNames(), faults_)) {
      ReadWhole(*value, name, 0, 1000, retries[*ReasonFromName(name)], faults_);
    }
  }

  Sweep& sweep_;
  std::vector<yaml::Fault>& faults_;
  ValueCount values_;
};

// Returns the nodes that the launcher's own mapping asks for; 0: not given.
int64_t OwnNodes(const Json& config, const std::string& launcher) {
  const auto own = config.find(launcher);
  if (own == config.end() || !own->is_object()) return 0;
  const auto nodes = own->find("nodes");
  if (nodes == own->end() || !nodes->is_number_integer()) return 0;
  return std::clamp<int64_t>(nodes->get<int64_t>(), 0, 65'536);  // the launcher refuses values beyond this
}

}  // namespace

void ReadLaunch(const yaml::YamlNode& node, Sweep& sweep, std::vector<yaml::Fault>& faults) {
  LaunchReader(sweep, faults).Read(node);
}

void ReadSetOfRule(const yaml::YamlNode& set, Sweep& sweep, Launch& to, std::vector<yaml::Fault>& faults) {
  LaunchReader(sweep, faults).ReadSet(set, to);
}

const yaml::Names& SetupSettings() {
  static const yaml::Names names(kShape.begin(), kShape.end());
  return names;
}

bool IsOfSetup(std::string_view setting) { return std::ranges::find(kShape, setting) != kShape.end(); }

bool IsPlainName(const std::string& name) {
  static constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
  return !name.empty() && name.size() <= 100 && name.find_first_not_of(kAllowed) == std::string::npos;
}

yaml::Place Launch::PlaceOf(const std::string& setting) const {
  const auto found = places.find(setting);
  return found == places.end() ? place : found->second;
}

Launch WithRule(Launch launch, const LaunchRule& rule) {
  const Json& said = rule.set.config;
  for (const auto& [name, member] : kNumbers) {
    if (said.contains(std::string(name))) launch.*member = rule.set.*member;
  }
  if (said.contains("time_limit")) launch.time_limit_auto = rule.set.time_limit_auto;
  if (said.contains("keep_logs")) launch.keep_logs = rule.set.keep_logs;
  for (const auto& [name, value] : rule.set.environment) launch.environment[name] = value;
  for (const auto& [setting, place] : rule.set.places) launch.places[setting] = place;
  launch.config.merge_patch(said);
  return launch;
}

Launch LaunchOf(const Sweep& sweep, const Point& point) {
  Launch launch = sweep.launch;
  for (const size_t i : point.rules) {
    const LaunchRule& rule = sweep.rules.at(i);
    launch = WithRule(std::move(launch), rule);
    if (rule.set.config.contains("nodes") || rule.set.config.contains("ranks_per_node") ||
        OwnNodes(rule.set.config, launch.launcher) > 0) {
      launch.place = rule.place;
    }
  }
  launch.definition = sweep.trainers.Find(point.spec.trainer);
  const int64_t processes = ProcessesOf(point.spec);
  if (const int64_t own = OwnNodes(launch.config, launch.launcher); own > 0) launch.nodes = own;
  if (launch.nodes == 0) {
    launch.nodes =
        launch.ranks_per_node > 0 ? (processes + launch.ranks_per_node - 1) / launch.ranks_per_node : int64_t{1};
  }
  // A node without a process of its own would do nothing, whichever trainer it is.
  if (processes % launch.nodes != 0) {
    throw Error(
        ErrorKind::kInvalidInput,
        yaml::FaultText(sweep.file, {launch.place,
                                     fmt::format("{} nodes cannot share the {} of a point evenly", launch.nodes,
                                                 processes == 1 ? "one process" : fmt::format("{} ranks", processes))}),
        "ranks says how many processes a point is, of any trainer: let it be a multiple of nodes, say nodes or "
        "ranks_per_node otherwise, or exclude the point");
  }
  return launch;
}

JobDescription DescriptionOf(const Launch& launch, const std::string& node) {
  return launch.describe ? (*launch.describe)(launch, node) : JobDescription();
}

Json SharedConfig(const Sweep& sweep) {
  Json config = sweep.launch.config;
  if (sweep.rules.empty() && sweep.launch.ranks_per_node == 0) return config;
  int64_t nodes = 1;
  int64_t cpus = sweep.launch.cpus;
  bool all_say_cpus = true;
  for (const Point& point : Expand(sweep)) {
    const Launch launch = LaunchOf(sweep, point);
    nodes = std::max(nodes, launch.nodes);
    cpus = std::max(cpus, launch.cpus);
    all_say_cpus = all_say_cpus && launch.cpus > 0;
  }
  if (nodes > 1) config["nodes"] = nodes;
  config.erase("cpus");
  if (cpus > 0 && all_say_cpus) config["cpus"] = cpus;
  return config;
}

std::string SetupOf(const Launch& launch, const std::vector<std::string>& trainer) {
  std::vector<std::string> argv = launch.trainer.empty() ? trainer : launch.trainer;
  if (launch.definition) argv = {launch.definition->name, "definition " + Hex(Hash(launch.definition->text))};
  std::string setup = ridgeline::SetupOf(argv, launch.cpus, launch.nodes, launch.environment);
  const auto own = launch.config.find(launch.launcher);
  Json shape = Json::object();
  for (const char* name : kShape) {
    if (own != launch.config.end() && own->is_object() && own->contains(name)) shape[name] = own->at(name);
  }
  if (shape.empty()) return setup;
  Json whole = ParseJson(setup, "a setup");
  whole[launch.launcher] = std::move(shape);
  return DumpJson(whole);
}

}  // namespace ridgeline::sweep
