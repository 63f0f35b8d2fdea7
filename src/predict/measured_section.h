// `measured` of a device's file: what calls took on it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "predict/measured.h"
#include "yaml/entries.h"
#include "yaml/yaml.h"

namespace ridgeline {

// What is wrong is appended to `faults`, at its place. `sources`: the names that stand under the file's sources.
std::vector<std::shared_ptr<const MeasuredCalls>> ReadMeasured(const YamlNode& node, const Names& sources,
                                                               std::vector<Fault>& faults);

// The same as text, indented as it stands in a file.
std::string MeasuredText(const std::vector<std::shared_ptr<const MeasuredCalls>>& measured, const std::string& source);

}  // namespace ridgeline
