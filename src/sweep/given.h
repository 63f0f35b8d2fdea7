// Values that a command line gives in addition to a sweep's file: `-S field=value` and `--only field=value`. They
// become the sections `set` and `only` of the file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "yaml/yaml.h"

namespace ridgeline::sweep {

struct Given {
  std::vector<std::string> set;   // "batch_size=8", "batch_size=1,8", "batch_size=1..64*2"
  std::vector<std::string> only;  // the same, and "batch_size<8"

  bool empty() const { return set.empty() && only.empty(); }
};

// Adds the given values to the sections `set` and `only`, where they replace those of the same fields. Their places are
// kPlaceOfSet and kPlaceOfOnly. Throws Error(kUsage) for a text that is not a field with a value.
void AddGiven(const Given& given, yaml::YamlNode& root);

// Returns the sweep's text with the given values: `text` and the two sections after it. If nothing can follow `text`,
// returns `root` as text.
std::string TextWithGiven(std::string_view text, const Given& given, const yaml::YamlNode& root);

// Returns the sections `set` and `only` of a sweep's text as one line: "set: {…}, only: {…}". Empty if it has neither.
std::string GivenIn(std::string_view text);

// Returns `root` as text of one line.
std::string SweepText(const yaml::YamlNode& root);

// Moves the values of the section `set` to the places of their fields in the file, and removes the section. If a field
// is not an axis, one value becomes its default, and several become the last axis. `include` then no longer adds it.
void ApplySet(yaml::YamlNode& root, std::vector<yaml::Fault>& faults);

}  // namespace ridgeline::sweep
