// The section `measured` of a device's file: times of calls on it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "predict/measured.h"
#include "yaml/entries.h"
#include "yaml/yaml.h"

namespace ridgeline::predict {

// Appends faults, with their places, to `faults`. `sources`: the names under the file's `sources`.
std::vector<std::shared_ptr<const MeasuredCalls>> ReadMeasured(const yaml::YamlNode& node, const yaml::Names& sources,
                                                               std::vector<yaml::Fault>& faults);

// The section as YAML, indented as in a file.
std::string MeasuredText(const std::vector<std::shared_ptr<const MeasuredCalls>>& measured, const std::string& source);

}  // namespace ridgeline::predict
