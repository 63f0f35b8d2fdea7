// A sweep: what a person wrote in YAML, checked, with every value's place in the file. docs/sweeps.md is its language.
#pragma once

#include <cstdint>
#include <filesystem>
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
#include "sweep/sweep_trainers.h"
#include "yaml/yaml.h"

namespace ridgeline {

// One field's value, and where it was written. `model` holds the name of a preset, or what a trainer knows it by.
struct Assignment {
  const Field* field = nullptr;
  FieldValue value;
  Place place;
  bool largest = false;  // of batch_size: `max`, for which `value` is 1 (Sweep::largest)
};

// Axes that move together, each with as many values; a matrix axis is a group of one.
using Axis = std::vector<Assignment>;  // one field's values, at least one
using AxisGroup = std::vector<Axis>;

// One condition on a field: it equals one of several values, or the comparison holds.
struct Condition {
  enum class Op { kOneOf, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual };
  const Field* field = nullptr;
  Op op = Op::kOneOf;
  std::vector<FieldValue> values;  // one, but for kOneOf
  Place place;

  bool Holds(const FieldValue& value) const;
};

// Drops every combination on which all conditions hold. A field that is an axis is compared with the axis's value, any
// other with the value the point would have.
struct Exclude {
  std::vector<Condition> conditions;
  Place place;
};

// GitHub Actions' `include`. `conditions` are the entry's axes, `additions` its other fields (a list of values each).
// An entry is added to each combination of the grid on which all conditions hold, overwriting what earlier entries
// added but never an axis; with several values for a field, the combination is repeated for each. An entry that no
// combination takes is a new point (or several) of its own, whatever later entries say. All this after `exclude`.
// A list for an axis stands for one entry per value.
struct Include {
  std::vector<Condition> conditions;
  std::vector<Axis> additions;
  Place place;
};

// What is said under `launch:`; what of it may differ from point to point, launch.h works out.
struct Launch {
  std::string launcher = "local";
  int64_t nodes = 0;                 // of a point; 0: what follows from ranks_per_node
  int64_t ranks_per_node = 0;        // 0: all, on one node
  int64_t cpus = 0;                  // cores of a node a point may use; 0: all
  int64_t memory_limit_bytes = 0;    // a point may use; 0: no limit
  int64_t time_limit_s = 0;          // of a point; 0: none
  bool time_limit_auto = false;      // instead: what follows from how long such points take
  int64_t meet_limit_s = 0;          // until a point's ranks have met; 0: the usual
  int64_t save_time_s = 120;         // a trainer has to save its state when the node is taken away
  bool keep_logs = false;            // of points that end well, too
  int64_t bundle = 1;                // points a job
  int64_t bundle_s = 0;              // instead: as many points as are predicted to take so long together; 0: not said
  int64_t max_parallel = 0;          // jobs at once; 0: the launcher's choice
  int64_t launcher_timeout_s = 900;  // a launcher may not answer, or take no job
  int64_t give_up_after = 5;         // jobs in a row that failed alike for the infrastructure's sake; 0: never
  std::vector<std::string> trainer;  // argv, of points that our own trains; empty: ridgeline-train
  std::shared_ptr<const Trainer> definition;  // of a point's other trainer; nullptr: our own
  // How often a point is run again, in one run of the driver, that ended as infrastructure for this reason.
  std::map<InfrastructureReason, int64_t> retries = {
      {InfrastructureReason::kNode, 1},  {InfrastructureReason::kStart, 1},     {InfrastructureReason::kStorage, 1},
      {InfrastructureReason::kImage, 1}, {InfrastructureReason::kPreempted, 1}, {InfrastructureReason::kLost, 1}};
  std::map<std::string, std::string> environment;  // of the trainer, beside what it is started with
  Json config = Json::object();                    // the mapping as written, but for `rules`: a launcher's `config`
  std::map<std::string, Place> places;             // of settings, "cpus", and of those of a launcher, "slurm: gpus"
  Place place;

  Place PlaceOf(const std::string& setting) const;  // of the section, or the rule, where the setting has none
};

// What points ask for on which all conditions hold, in place of what the sweep and the rules before say.
struct LaunchRule {
  std::vector<Condition> when;
  Launch set;   // what of it is set, its `config` names
  Place place;  // of the rule
};

// What is said under `price:`. A node's price and power stand for what the device's description says of a machine.
struct SweepPrice {
  std::string device;            // a description's name (predict/device.h); empty: none is said
  double node_usd_per_hour = 0;  // 0: not said
  std::string date;              // of that price
  double node_watts = 0;         // 0: not said
  Place device_place;
};

// Figures that others measured and published of the points on which all conditions hold; of all ranks. 0: not said.
struct Published {
  std::vector<Condition> when;
  std::string source;
  double cold_tokens_per_s = 0;
  double steady_tokens_per_s = 0;
  int64_t peak_bytes = 0;  // of a GPU's memory
};

// What is said under `search:`: not all points are measured, but those that what was measured says to (src/search).
// Times and costs are predicted by what `price` says.
struct SweepSearch {
  enum class Objective { kTokensPerS, kCost, kFit };
  Objective maximize = Objective::kTokensPerS;
  // Axes, and those that move with one; for each combination of the others it begins anew.
  std::vector<const Field*> over;
  int64_t budget = 0;  // runs that each may take
  Place place;
};

class LargestBatch;
struct Point;

struct Sweep {
  std::string name;  // one line of free text: never a path, never markup
  std::string description;
  std::filesystem::path file;
  std::string text;                  // what all this was read from: a file may be another by the time it is asked again
  SweepTrainers trainers;            // that its points name; fields may be of these
  std::vector<Assignment> defaults;  // those of `measure` too
  std::vector<AxisGroup> groups;     // the first changes slowest: the matrix's axes, then the zip groups
  std::vector<Include> include;
  std::vector<Exclude> exclude;
  Launch launch;
  std::vector<LaunchRule> rules;  // of `launch`
  SweepPrice price;
  std::vector<Published> published;
  std::vector<std::string> reports;  // names of letters, digits, - and _
  std::optional<SweepSearch> search;
  Place defaults_place;        // where a missing field is reported
  std::set<std::string> only;  // of its points, by their ids; empty: all
  // What `batch_size: max` stands for, which whoever reads a sweep does not know; nullptr: such points have 1.
  std::shared_ptr<const LargestBatch> largest;
};

// Answers what `batch_size: max` of a point stands for (plan/largest.h).
class LargestBatch {
 public:
  virtual ~LargestBatch() = default;
  // The batch sizes that are measured in its place, the largest first. `point` has 1 and no id yet; `place` is where it
  // is written. Throws Error.
  virtual std::vector<int64_t> Of(const Sweep& sweep, const Point& point, const Place& place) const = 0;
};

// Whether a point of the sweep may have `batch_size: max`.
bool HasLargestBatch(const Sweep& sweep);

// Reads and checks a sweep. Throws one Error(kInvalidInput) with all faults of the file, a line each:
// "file:line:column: message", or where there is no such file; Error(kInfrastructure) where it cannot be read.
// Definitions of its trainers are looked for in its own folder, and `trainers` in it, in `trainers`, and where all are
// (trainers/find.h).
Sweep LoadSweep(const std::filesystem::path& file, const std::vector<std::filesystem::path>& trainers = {});

// The name of a sweep, of whose file nothing else is looked at: neither its trainers' definitions nor what was changed
// in it since it ran has to be right. Throws as LoadSweep where it has none.
std::string LoadSweepName(const std::filesystem::path& file);

// LoadSweep, from text; `file` is what faults are reported under.
Sweep ParseSweep(std::string_view text, const std::filesystem::path& file,
                 const std::vector<std::filesystem::path>& trainers = {});

// Of a sweep's text alone how it is launched, but for its rules: what is needed where its points are known already. Its
// trainers' definitions need not be there any more. Throws as ParseSweep.
Launch ParseLaunch(std::string_view text, const std::filesystem::path& file);

// The fields a sweep varies, in the order of its file: its axes, then what `include` adds.
std::vector<const Field*> VaryingFields(const Sweep& sweep);

}  // namespace ridgeline
