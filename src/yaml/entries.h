// What files of YAML have in common: mappings with known names, and lists of such mappings.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "yaml/yaml.h"

namespace ridgeline {

using Names = std::vector<std::string>;
using Entry = std::pair<std::string, const YamlNode*>;

// Each appends what is wrong to `faults`, at its place, and returns what was right.

// The entries of a mapping whose keys are text, each once. `known` empty: any name.
std::vector<Entry> Entries(const YamlNode& map, std::string_view what, const Names& known, std::vector<Fault>& faults);

// A list's mappings; a lone mapping counts as a list of one where `lone` says so. `of`: what they are mappings of.
std::vector<const YamlNode*> Mappings(const YamlNode& node, std::string_view section, bool lone,
                                      std::vector<Fault>& faults, std::string_view of);

// Whether a file is plainly of another kind than those with these top-level keys: it has fewer than two of them, and
// others. False for a file that cannot be read as a mapping: whoever reads it says what is wrong.
bool IsOfAnotherKind(const std::filesystem::path& file, const Names& keys);

}  // namespace ridgeline
