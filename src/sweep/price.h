// The section `price:`: the device that the sweep is meant for, and the price and power of its nodes.
#pragma once

#include <vector>

#include "sweep/sweep.h"
#include "yaml/yaml.h"

namespace ridgeline::sweep {

// Reads the section into `sweep.price`. Appends what is wrong to `faults`, at its place.
void ReadPrice(const yaml::YamlNode& node, Sweep& sweep, std::vector<yaml::Fault>& faults);

}  // namespace ridgeline::sweep
