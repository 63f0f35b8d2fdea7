// What the sections of a sweep file have in common: mappings with known names, and lists of such mappings.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "run/fields.h"
#include "sweep/sweep.h"
#include "sweep/values.h"
#include "yaml/yaml.h"

namespace ridgeline {

using Names = std::vector<std::string>;
using Entry = std::pair<std::string, const YamlNode*>;

const Names& FieldNames();

// Each appends what is wrong to `faults`, at its place, and returns what was right.

// The entries of a mapping whose keys are text, each once. `known` empty: any name.
std::vector<Entry> Entries(const YamlNode& map, std::string_view what, const Names& known, std::vector<Fault>& faults);

// The entries of a mapping of RunSpec fields.
std::vector<std::pair<const Field*, const YamlNode*>> FieldEntries(const YamlNode& node, std::string_view section,
                                                                   std::vector<Fault>& faults,
                                                                   const Names& known = FieldNames());

// A list's mappings; a lone mapping counts as a list of one where `lone` says so. `of`: what they are mappings of.
std::vector<const YamlNode*> Mappings(const YamlNode& node, std::string_view section, bool lone,
                                      std::vector<Fault>& faults, std::string_view of = "fields");

// A mapping of conditions, which shall all hold; their values are counted. Throws Fault where they are too many.
std::vector<Condition> ReadConditions(const YamlNode& map, std::string_view section, ValueCount& count,
                                      std::vector<Fault>& faults);

// Nothing where it is no integer of this range.
void ReadWhole(const YamlNode& node, std::string_view name, int64_t min, int64_t max, int64_t& to,
               std::vector<Fault>& faults);

}  // namespace ridgeline
