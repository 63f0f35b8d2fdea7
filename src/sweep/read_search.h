// The section `search:` of a sweep file.
#pragma once

#include <vector>

#include "sweep/sweep.h"
#include "yaml/yaml.h"

namespace ridgeline::sweep {

// Reads the section into `sweep.search`. REQUIRES: the sweep's axes are read. Appends what is wrong to `faults`, at its
// place.
void ReadSearch(const yaml::YamlNode& node, Sweep& sweep, std::vector<yaml::Fault>& faults);

}  // namespace ridgeline::sweep
