// Runs that correct predictions, as a command line names them.
#pragma once

#include <string>
#include <vector>

#include "predict/device.h"
#include "predict/framework.h"
#include "sweep/sweep.h"

namespace ridgeline {

// Corrects each framework on the device by what is known of its trainer. Each of `known` is a database, a file of lines
// as `trainers try --as-calibration` prints them, or ID=TIME: the beginning of a point's id of the sweep, and what its
// step takes. Throws Error(kUsage) where nothing tells of the device's GPU.
void CorrectBy(const std::vector<std::string>& known, const Sweep& sweep, const Device& device, Frameworks& frameworks);

}  // namespace ridgeline
