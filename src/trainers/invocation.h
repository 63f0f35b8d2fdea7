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

namespace ridgeline {

// Who starts the ranks of a point that has several.
enum class Processes {
  kOurs,      // we do, each with RANK, LOCAL_RANK, WORLD_SIZE, …
  kTorchrun,  // a launcher of its own, which we start once a node
  kSrun,      // Slurm: we start the command once, by srun
  kOne,       // the program itself, which we start once
};

// A field that the definition adds. `field` views the texts beside it.
struct OwnField {
  std::string name;
  std::string help;
  std::string choices;
  Field field;
};

// What the trainer needs of a point.
struct Requirement {
  Expression condition;
  std::string otherwise;  // what is wrong where it does not hold; empty: the condition says it
};

struct Invocation {
  std::vector<Template> command;
  std::map<std::string, Template> environment;
  std::map<std::string, Template> files;  // by the name of each in the output folder
  std::vector<Template> resume;           // arguments more, where there are checkpoint files
  std::optional<Template> directory;      // that it runs in
  std::optional<Template> result;         // where it writes its metrics, of `result: file`
  Processes processes = Processes::kOurs;
  std::vector<std::shared_ptr<const OwnField>> fields;
  // Our fields that it takes, by what is listed alone; nothing listed: whatever they are.
  std::map<std::string, std::vector<std::string>> supports;

  std::optional<Expression> data_parallel;  // how many ranks are; nothing: all over those that share a model
  std::vector<Requirement> require;

  std::set<std::string> used;  // every name that its templates have, and what these stand for

  const Field* FindOwn(std::string_view name) const;  // nullptr where there is none
};

// Where and as what one process of a point runs.
struct ProcessPlace {
  int64_t nodes = 1;
  int64_t node_rank = 0;
  int64_t ranks_per_node = 1;
  int64_t gpus_per_node = 0;
  int64_t rank = 0;  // the first of those that it stands for
  int64_t local_rank = 0;
  std::string master_addr = "127.0.0.1";
  std::string master_port = "29500";
  std::string output_dir;
  std::string checkpoint_dir;  // empty: it keeps none
  std::string spec_file;
  std::string result_file;
  std::map<std::string, std::string> environment;  // that it will have
  bool resumes = false;
  // Nothing is started: what is not known stands as a Placeholder here, and in what is made of a variable that is not
  // in the environment.
  bool is_shown = false;
};

// What stands for a name's value that only the node knows: "<MASTER_ADDR>" of master_addr, "<DATA>" of env.DATA.
std::string Placeholder(std::string_view name);

// What is started.
struct Invoked {
  std::vector<std::string> argv;
  std::map<std::string, std::string> environment;  // added to what the node has
  std::map<std::string, std::string> files;
  std::filesystem::path directory;  // that it runs in; empty: where we do
  std::filesystem::path result;     // empty: it writes none
};

// Before the name of a variable of the environment, in a template.
inline constexpr std::string_view kVariablePrefix = "env.";

// The keys of a definition that ReadInvocation reads.
inline constexpr std::string_view kInvocationKeys[] = {"command", "directory",     "processes", "env",
                                                       "files",   "fields",        "supports",  "resume",
                                                       "file",    "data_parallel", "require"};

// `entries`: a definition's, by key. Nothing where it has no `command`. Appends what is wrong to `faults`, at its
// place.
std::optional<Invocation> ReadInvocation(const std::map<std::string, const YamlNode*>& entries,
                                         std::vector<Fault>& faults);

// A condition on a point's fields, those of `invocation` among them. Nothing, and a fault, where it is none.
std::optional<Expression> ReadCondition(const YamlNode& node, std::string_view what, const Invocation& invocation,
                                        std::vector<Fault>& faults);

// Drops what is no field of the trainer's own, and sets to its standard what is not given.
void CanonicalizeOwn(const Invocation& invocation, RunSpec& spec);

// Why the trainer called `name` cannot run the point, which is canonical: values that it does not take, fields that it
// would not heed. Empty where it can.
std::vector<Problem> WhyRefused(const std::string& name, const Invocation& invocation, const RunSpec& spec);

// Throws Error(kInvalidInput) for a name that has no value here, such as a variable of the environment.
Invoked Invoke(const Invocation& invocation, const RunSpec& spec, const ProcessPlace& place);

}  // namespace ridgeline
