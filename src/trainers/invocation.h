// How a definition's trainer is started for a point, and which points it can run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ridgeline/run.h"
#include "run/fields.h"
#include "run/spec.h"
#include "trainers/expression.h"
#include "trainers/templates.h"
#include "yaml/yaml.h"

namespace ridgeline::trainers {

// Who starts the ranks of a point with several ranks.
enum class Processes {
  kOurs,      // Ridgeline, each with RANK, LOCAL_RANK, WORLD_SIZE, …
  kTorchrun,  // the trainer's own launcher, which Ridgeline starts once per node
  kSrun,      // Slurm: Ridgeline starts the command once, with srun
  kOne,       // the program itself, which Ridgeline starts once
};

// A field that the definition adds. `field` refers to the texts here.
struct OwnField {
  std::string name;
  std::string help;
  std::string choices;
  Field field;
};

// What the trainer requires of a point.
struct Requirement {
  Expression condition;
  std::string otherwise;  // the message if it does not hold; empty: the condition itself
};

struct Invocation {
  std::vector<Template> command;
  std::map<std::string, Template> environment;
  std::map<std::string, Template> files;  // by name in the output folder
  std::vector<Template> resume;           // further arguments, if there are checkpoint files
  std::optional<Template> directory;      // working folder
  std::optional<Template> result;         // file with its metrics, for `result: file`
  Processes processes = Processes::kOurs;
  std::vector<std::shared_ptr<const OwnField>> fields;
  // Allowed values of our fields. Fields that are not here may have any value.
  std::map<std::string, std::vector<std::string>> supports;

  std::optional<Expression> data_parallel;  // data-parallel ranks; nothing: all ranks / those that share a model
  std::vector<Requirement> require;

  std::set<std::string> used;  // every name in its templates, and the fields behind them

  const Field* FindOwn(std::string_view name) const;  // nullptr if there is none
};

// Where one process of a point runs, and as which ranks.
struct ProcessPlace {
  int64_t nodes = 1;
  int64_t node_rank = 0;
  int64_t ranks_per_node = 1;
  int64_t gpus_per_node = 0;
  int64_t rank = 0;  // the first rank that it starts
  int64_t local_rank = 0;
  std::string master_addr = "127.0.0.1";
  std::string master_port = "29500";
  std::string output_dir;
  std::string checkpoint_dir;  // empty: no checkpoint files
  std::string spec_file;
  std::string result_file;
  std::map<std::string, std::string> environment;  // of the process
  bool resumes = false;
  // The command is only shown, not started. Unknown values are Placeholders, and so are missing environment variables.
  bool is_shown = false;
};

// Stands for a value that only the node knows: "<MASTER_ADDR>" for master_addr, "<DATA>" for env.DATA.
std::string Placeholder(std::string_view name);

// A command, ready to start.
struct Invoked {
  std::vector<std::string> argv;
  std::map<std::string, std::string> environment;  // added to the node's
  std::map<std::string, std::string> files;
  std::filesystem::path directory;  // working folder; empty: the current one
  std::filesystem::path result;     // empty: it writes no file
};

// Precedes the name of an environment variable in a template.
inline constexpr std::string_view kVariablePrefix = "env.";

// The keys that ReadInvocation reads.
inline constexpr std::string_view kInvocationKeys[] = {"command", "directory",     "processes", "env",
                                                       "files",   "fields",        "supports",  "resume",
                                                       "file",    "data_parallel", "require"};

// `entries`: those of a definition, by key. Nothing if there is no `command`. Appends faults, with their places, to
// `faults`.
std::optional<Invocation> ReadInvocation(const std::map<std::string, const yaml::YamlNode*>& entries,
                                         std::vector<yaml::Fault>& faults);

// Reads a condition on a point's fields, including those of `invocation`. Nothing, and a fault, if it is not one.
std::optional<Expression> ReadCondition(const yaml::YamlNode& node, std::string_view what, const Invocation& invocation,
                                        std::vector<yaml::Fault>& faults);

// Removes own fields that the trainer does not have, and sets missing ones to their defaults.
void CanonicalizeOwn(const Invocation& invocation, RunSpec& spec);

// Why the trainer called `name` cannot run the point: values that it does not take, fields that it would ignore. Empty
// if it can. REQUIRES: `spec` is canonical.
std::vector<Problem> WhyRefused(const std::string& name, const Invocation& invocation, const RunSpec& spec);

// Returns, by field, a value that the trainer takes for each value of `spec` that it would refuse or ignore: the first
// that its definition supports, else the plain one. Fields of the shape are left as they are. REQUIRES: `spec` is
// canonical.
Json TakenInstead(const Invocation& invocation, const RunSpec& spec);

// Throws Error(kInvalidInput) if a name has no value, such as a missing environment variable.
Invoked Invoke(const Invocation& invocation, const RunSpec& spec, const ProcessPlace& place);

}  // namespace ridgeline::trainers
