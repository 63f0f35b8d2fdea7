// What the sections of a sweep file have in common: mappings of fields and of conditions.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "run/fields.h"
#include "sweep/sweep.h"
#include "sweep/values.h"
#include "yaml/entries.h"
#include "yaml/yaml.h"

namespace ridgeline {

// Each appends what is wrong to `faults`, at its place, and returns what was right.

// The entries of a mapping of a point's fields, those of its trainers' own among them. `known`: those that the section
// takes; a name among them that is no field's has none.
using FieldEntry = std::pair<const Field*, const YamlNode*>;
std::vector<FieldEntry> FieldEntries(const YamlNode& node, std::string_view section, const SweepTrainers& trainers,
                                     std::vector<Fault>& faults, const Names& known);
std::vector<FieldEntry> FieldEntries(const YamlNode& node, std::string_view section, const SweepTrainers& trainers,
                                     std::vector<Fault>& faults);

// A mapping of conditions, which shall all hold; their values are counted. Throws Fault where they are too many.
std::vector<Condition> ReadConditions(const YamlNode& map, std::string_view section, const SweepTrainers& trainers,
                                      ValueCount& count, std::vector<Fault>& faults);

// Nothing where it is no integer of this range.
void ReadWhole(const YamlNode& node, std::string_view name, int64_t min, int64_t max, int64_t& to,
               std::vector<Fault>& faults);

}  // namespace ridgeline
