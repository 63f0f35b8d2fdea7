// Reads what YAML files have in common: mappings with known keys, and lists of such mappings.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "yaml/yaml.h"

namespace ridgeline::yaml {

using Names = std::vector<std::string>;
using Entry = std::pair<std::string, const YamlNode*>;

// Each function appends faults, with their places, to `faults`, and returns the valid part.

// The entries of a mapping. Keys must be text, and unique. An empty `known` allows any key.
std::vector<Entry> Entries(const YamlNode& map, std::string_view what, const Names& known, std::vector<Fault>& faults);

// The mappings of a list. With `lone`, a single mapping counts as a list of one. `of`: their name in messages.
std::vector<const YamlNode*> Mappings(const YamlNode& node, std::string_view section, bool lone,
                                      std::vector<Fault>& faults, std::string_view of);

// Whether a file is clearly of another kind than files with these top-level keys: it has other keys, and fewer than two
// of these. False for a file that is not a mapping; its reader reports that.
bool IsOfAnotherKind(const std::filesystem::path& file, const Names& keys);

}  // namespace ridgeline::yaml
