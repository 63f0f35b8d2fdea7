// Runs that correct predictions, as named on a command line.
#pragma once

#include <string>
#include <vector>

#include "predict/device.h"
#include "predict/framework.h"
#include "sweep/sweep.h"

namespace ridgeline::cli {

// Corrects each framework's predictions for the device with known runs of its trainer. Each of `known` is one of these:
// a database; a file of lines as `trainers try --as-calibration` prints them; or ID=TIME, the beginning of the id of a
// point of the sweep and the time of its step. Throws Error(kUsage) if no run was on the device's GPU.
void CorrectBy(const std::vector<std::string>& known, const sweep::Sweep& sweep, const predict::Device& device,
               predict::Frameworks& frameworks);

}  // namespace ridgeline::cli
