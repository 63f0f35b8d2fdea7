// A sweep: the YAML that a person wrote, checked, with the place of every value in the file. docs/sweeps.md describes
// the language.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/json.h"
#include "ridgeline/run.h"
#include "run/fields.h"
#include "sweep/formula.h"
#include "sweep/given.h"
#include "sweep/sweep_trainers.h"
#include "yaml/yaml.h"

namespace ridgeline {
struct Point;
}  // namespace ridgeline

namespace ridgeline::sweep {

inline constexpr const char* kDefaultLauncher = "local";  // if neither the sweep nor --launcher names one

// One field's value, and where it was written. For `model`, the name of a preset, or a trainer's name for a model.
struct Assignment {
  const Field* field = nullptr;
  FieldValue value;
  yaml::Place place;
  bool largest = false;  // for batch_size: it is `max`, and `value` is 1 (Sweep::largest)
  // Computes the value on each point, in place of `value`. With AccumulationFor, `value` is the global batch.
  std::shared_ptr<const Formula> formula = nullptr;
  bool is_global_batch = false;  // written as global_batch

  // The assignment as written: "batch_size: 8", "batch_size: {{4096 / seq_length}}", "global_batch: 512".
  std::string Text() const;
};

// Axes that move together, with equally many values. A matrix axis is a group of one.
using Axis = std::vector<Assignment>;  // one field's values, at least one
using AxisGroup = std::vector<Axis>;

// One condition on a field: it equals one of several values, or the comparison holds. Or a formula of its own.
struct Condition {
  enum class Op { kOneOf, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual, kMultiple, kNotMultiple };
  const Field* field = nullptr;
  Op op = Op::kOneOf;
  std::vector<FieldValue> values;  // a single value, except for kOneOf
  const Field* than = nullptr;     // the field that it is compared with, instead of `values`
  yaml::Place place;
  std::shared_ptr<const Formula> formula = nullptr;  // instead of all but `place`: `field` is nullptr then

  bool Holds(const FieldValue& value) const;  // REQUIRES: than and formula are nullptr
  // False if a field has no value. Throws Error(kInvalidInput) if a formula has none for other reasons.
  bool Holds(const PointValues& values) const;
};

// Drops every combination for which all conditions hold. A field that is an axis is compared by the axis's value, any
// other field by the value that the point would have.
struct Exclude {
  std::vector<Condition> conditions;
  yaml::Place place;
};

// `include` as in GitHub Actions. `conditions` are the entry's axes, `additions` its other fields, each with a list of
// values. An entry applies to each combination of the grid for which all conditions hold. It overwrites what earlier
// entries added, but never an axis. If a field has several values, the combination is repeated for each. An entry that
// applies to no combination makes new points of its own, whatever later entries say. All this happens after `exclude`.
// A list for an axis means one entry for each value.
struct Include {
  std::vector<Condition> conditions;
  std::vector<Axis> additions;
  yaml::Place place;
};

struct JobDescription;

// The section `launch:`. Some settings may differ from point to point; launch.h computes those.
struct Launch {
  std::string launcher = kDefaultLauncher;
  int64_t nodes = 0;               // for a point; 0: follows from ranks_per_node
  int64_t ranks_per_node = 0;      // 0: all ranks on one node
  int64_t cpus = 0;                // cores of a node that a point may use; 0: all
  int64_t memory_limit_bytes = 0;  // memory that a point may use; 0: no limit
  int64_t time_limit_s = 0;        // for a point; 0: none
  bool time_limit_auto = false;    // instead: follows from how long such points take
  int64_t meet_limit_s = 0;        // time for a point's ranks to meet; 0: the default
  int64_t save_time_s = 120;       // time for a trainer to save its state when its node is taken away
  bool keep_logs = false;          // also of points that end well
  int64_t bundle = 1;              // points for each job
  int64_t bundle_s = 0;            // instead: as many points as are predicted to take this long together; 0: not given
  int64_t max_parallel = 0;        // most jobs at once; 0: the launcher decides
  int64_t launcher_timeout_s = 900;  // how long a launcher may not answer, or take no job
  int64_t give_up_after = 5;  // after so many jobs in a row that failed alike because of the infrastructure; 0: never
  std::vector<std::string> trainer;                     // argv for points of our own trainer; empty: ridgeline-train
  std::shared_ptr<const trainers::Trainer> definition;  // of the point's other trainer; nullptr: our own trainer
  // How often, within one run of the driver, a point is run again that ended as infrastructure with this reason.
  std::map<InfrastructureReason, int64_t> retries = {
      {InfrastructureReason::kNode, 1},  {InfrastructureReason::kStart, 1},     {InfrastructureReason::kStorage, 1},
      {InfrastructureReason::kImage, 1}, {InfrastructureReason::kPreempted, 1}, {InfrastructureReason::kLost, 1}};
  std::map<std::string, std::string> environment;  // for the trainer, in addition to what it is started with
  Json config = Json::object();                    // the mapping as written, without `rules`: a launcher's `config`
  std::map<std::string, yaml::Place> places;  // places of settings, "cpus", and of a launcher's settings, "slurm: gpus"
  yaml::Place place;
  // Asks the launcher what a job asks for (job_description.h); nullptr: nothing is known.
  std::shared_ptr<const std::function<JobDescription(const Launch&, const std::string& node)>> describe;

  // The place of the section or the rule if the setting has none.
  yaml::Place PlaceOf(const std::string& setting) const;
};

// Settings for points for which all conditions hold. They override the sweep's settings and earlier rules.
struct LaunchRule {
  std::vector<Condition> when;
  Launch set;               // only the settings that its `config` names are set
  yaml::Place place;        // place of the rule
  bool is_of_axis = false;  // the rule of a setting that is an axis (setting_axes.h)
};

// The section `price:`. A node's price and power override those in the device's description.
struct SweepPrice {
  std::string device;            // name of a description (predict/device.h); empty: none is given
  double node_usd_per_hour = 0;  // 0: not given
  std::string date;              // date of that price
  double node_watts = 0;         // 0: not given
  double max_usd = 0;            // the most that the sweep's jobs may cost in one campaign; 0: not given
  yaml::Place device_place, max_place;
};

// Figures that others measured and published for the points for which all conditions hold, over all ranks. 0: not
// given.
struct Published {
  std::vector<Condition> when;
  std::string source;
  double cold_tokens_per_s = 0;
  double steady_tokens_per_s = 0;
  int64_t peak_bytes = 0;  // memory of a GPU
};

// The section `search:`: measures only the points that earlier measurements suggest (src/search). Times and costs are
// predicted for the device that `price` names.
struct SweepSearch {
  enum class Objective { kTokensPerS, kCost, kFit };
  Objective maximize = Objective::kTokensPerS;
  // The searched axes, including those that move with one. Each combination of the other axes is searched by itself.
  std::vector<const Field*> over;
  int64_t budget = 0;  // most runs for each of these searches
  yaml::Place place;
};

class LargestBatch;

struct Sweep {
  std::string name;  // one line of free text: never a path, never markup
  std::string description;
  std::filesystem::path file;
  std::string text;                  // the text that was read, because the file may change before it is needed again
  SweepTrainers trainers;            // named by its points; fields may belong to these
  std::vector<Assignment> defaults;  // including those of `measure`
  std::vector<AxisGroup> groups;     // the first changes slowest: the matrix's axes, then the zip groups
  std::vector<Include> include;
  std::vector<Exclude> exclude;
  std::vector<Condition> selected;  // hold on every point: `only`
  yaml::Place selected_place;
  Launch launch;
  std::vector<LaunchRule> rules;  // of `launch`
  SweepPrice price;
  std::vector<Published> published;
  std::vector<std::vector<std::string>> setup;  // commands that run once, before the first point
  std::vector<std::string> reports;             // names of letters, digits, - and _
  std::optional<SweepSearch> search;
  yaml::Place defaults_place;  // where a missing field is reported
  std::set<std::string> only;  // ids of the points to keep; empty: all
  // Gives `batch_size: max` its value, which the reader of a sweep does not know; nullptr: such points have 1.
  std::shared_ptr<const LargestBatch> largest;
};

// Gives `batch_size: max` of a point its value (plan/largest.h).
class LargestBatch {
 public:
  virtual ~LargestBatch() = default;
  // Returns the batch sizes to measure instead, the largest first. `point` has 1 and no id yet; `place` is where `max`
  // is written. Throws Error.
  virtual std::vector<int64_t> Of(const Sweep& sweep, const Point& point, const yaml::Place& place) const = 0;
};

// Visits each value that the sweep gives a field: defaults, axes, and what `include` adds.
void ForEachAssignment(const Sweep& sweep, const std::function<void(const Assignment&)>& visit);

// Returns whether a point of the sweep may have `batch_size: max`.
bool HasLargestBatch(const Sweep& sweep);

// Reads and checks a sweep. Throws one Error(kInvalidInput) with all faults of the file, one on each line,
// "file:line:column: message", or if there is no such file. Throws Error(kInfrastructure) if the file cannot be read.
// Definitions of its trainers are searched in its own folder, in `trainers` there, in the folders `trainers`, and in
// the usual places (trainers/find.h). The sweep's `text` includes what was given on the command line.
Sweep LoadSweep(const std::filesystem::path& file, const std::vector<std::filesystem::path>& trainers = {},
                const Given& given = {});

// Returns the name of a sweep. Looks at nothing else in its file, so its trainers' definitions and later edits may be
// faulty. Throws as LoadSweep does if the file has no name.
std::string LoadSweepName(const std::filesystem::path& file);

// LoadSweep for a text. Faults are reported under `file`.
Sweep ParseSweep(std::string_view text, const std::filesystem::path& file,
                 const std::vector<std::filesystem::path>& trainers = {}, const Given& given = {});

struct LaunchAndPrice {
  Launch launch;
  SweepPrice price;
};

// Reads from a sweep's text only its price and how it is launched, without its rules, for callers that know its points
// already. Its trainers' definitions need not exist any more. Throws as ParseSweep does.
LaunchAndPrice ParseLaunchAndPrice(std::string_view text, const std::filesystem::path& file);

// The fields that a sweep varies, in the order of its file: its axes, then what `include` adds.
std::vector<const Field*> VaryingFields(const Sweep& sweep);

}  // namespace ridgeline::sweep
