// The section `published:`: figures that others measured and published for the sweep's points.
#pragma once

#include <vector>

#include "sweep/sweep.h"
#include "sweep/values.h"
#include "yaml/yaml.h"

namespace ridgeline::sweep {

// Reads the section into `sweep.published`. Appends what is wrong to `faults`, at its place. Throws Fault as
// ReadConditions does.
void ReadPublished(const yaml::YamlNode& node, Sweep& sweep, ValueCount& count, std::vector<yaml::Fault>& faults);

}  // namespace ridgeline::sweep
