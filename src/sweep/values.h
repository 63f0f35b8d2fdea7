// What a sweep file says for one field: a value, an axis (list or range), a condition.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sweep/sweep.h"
#include "yaml/yaml.h"

namespace ridgeline {

// Each appends what is wrong to `faults`, at its place, and returns what was right.
std::optional<Assignment> ReadAssignment(const Field& field, const YamlNode& node, std::vector<Fault>& faults);

// A list of values and ranges, or one range, or one value.
Axis ReadAxis(const Field& field, const YamlNode& node, std::vector<Fault>& faults);

// A comparison, or what ReadAxis reads.
std::optional<Condition> ReadCondition(const Field& field, const YamlNode& node, std::vector<Fault>& faults);

// As it is written in JSON and shown to people: 8, 0.0003, true, bf16.
std::string Text(const FieldValue& value);

}  // namespace ridgeline
