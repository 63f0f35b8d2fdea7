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

const Names& FieldNames();

// Each appends what is wrong to `faults`, at its place, and returns what was right.

// The entries of a mapping of RunSpec fields.
std::vector<std::pair<const Field*, const YamlNode*>> FieldEntries(const YamlNode& node, std::string_view section,
                                                                   std::vector<Fault>& faults,
                                                                   const Names& known = FieldNames());

// A mapping of conditions, which shall all hold; their values are counted. Throws Fault where they are too many.
std::vector<Condition> ReadConditions(const YamlNode& map, std::string_view section, ValueCount& count,
                                      std::vector<Fault>& faults);

// Nothing where it is no integer of this range.
void ReadWhole(const YamlNode& node, std::string_view name, int64_t min, int64_t max, int64_t& to,
               std::vector<Fault>& faults);

}  // namespace ridgeline
