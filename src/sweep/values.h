// A sweep file's values for one field: a single value, an axis (list or range), a condition.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sweep/sweep.h"
#include "yaml/yaml.h"

namespace ridgeline::sweep {

// A range writes many values in few letters. These limits are for one axis, and for all axes and conditions of a file
// together.
inline constexpr int64_t kMaxAxisValues = 1'000'000;
inline constexpr int64_t kMaxValues = 2'000'000;

class ValueCount {
 public:
  void Add(size_t values, const yaml::Place& place);  // throws Fault if there are too many

 private:
  int64_t count_ = 0;
};

// Each function appends what is wrong to `faults`, at its place, and returns what was right. `trainers` are the
// sweep's, which decide what may be a model.
std::optional<Assignment> ReadAssignment(const Field& field, const yaml::YamlNode& node, const SweepTrainers& trainers,
                                         std::vector<yaml::Fault>& faults);

// The assignment of a value that is known to be valid, to a field or to global_batch.
Assignment AssignmentOf(const Field& field, FieldValue value, const yaml::Place& place);

// A list of values and ranges, a single range, or a single value. Throws Fault if it has too many.
Axis ReadAxis(const Field& field, const yaml::YamlNode& node, const SweepTrainers& trainers,
              std::vector<yaml::Fault>& faults);

// A comparison, or what ReadAxis reads, without formulas.
std::optional<Condition> ReadCondition(const Field& field, const yaml::YamlNode& node, const SweepTrainers& trainers,
                                       std::vector<yaml::Fault>& faults);

}  // namespace ridgeline::sweep
