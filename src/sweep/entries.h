// Shared by the sections of a sweep file: mappings of fields and of conditions.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "run/fields.h"
#include "sweep/sweep.h"
#include "sweep/values.h"
#include "yaml/entries.h"
#include "yaml/yaml.h"

namespace ridgeline::sweep {

// Each function appends what is wrong to `faults`, at its place, and returns what was right.

// The entries of a mapping of a point's fields, including the fields of its trainers. `known`: the names that the
// section accepts; a name that is no field's has no Field.
using FieldEntry = std::pair<const Field*, const yaml::YamlNode*>;
std::vector<FieldEntry> FieldEntries(const yaml::YamlNode& node, std::string_view section,
                                     const SweepTrainers& trainers, std::vector<yaml::Fault>& faults,
                                     const yaml::Names& known);
std::vector<FieldEntry> FieldEntries(const yaml::YamlNode& node, std::string_view section,
                                     const SweepTrainers& trainers, std::vector<yaml::Fault>& faults);

// A mapping of conditions that must all hold, or one formula. Counts their values. Throws Fault if there are too many.
std::vector<Condition> ReadConditions(const yaml::YamlNode& map, std::string_view section,
                                      const SweepTrainers& trainers, ValueCount& count,
                                      std::vector<yaml::Fault>& faults);

// Adds a fault and leaves `to` unchanged if the value is no integer in this range.
void ReadWhole(const yaml::YamlNode& node, std::string_view name, int64_t min, int64_t max, int64_t& to,
               std::vector<yaml::Fault>& faults);

}  // namespace ridgeline::sweep
