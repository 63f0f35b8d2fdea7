// The programs that `ridgeline-train --calibrate` times: steps of small models, and programs of a few calls. They cover
// every op in every format, over the shapes of steps on this kind of device.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/step/program.h"
#include "ridgeline/run.h"

namespace ridgeline::engine {

// Returns steps of one rank. Each precision has shapes from small to large, while families, optimizers and other
// settings that decide a step's calls alternate. Any prefix of the list has some of each. `base`: device, gpu. GPUs get
// larger shapes. `small` gives few and small ones, for an emulated GPU.
std::vector<RunSpec> CalibrationSteps(const RunSpec& base, bool small = false);

// Returns steps between all ranks of `base`, sharded and not: they show the cost of collectives inside steps.
std::vector<RunSpec> CalibrationRankSteps(const RunSpec& base, bool small = false);

// One op many times, as a program without a model. `spec` names the device.
enum class Probe : uint8_t {
  kCopy,        // two large tensors added into a third
  kLaunch,      // calls with almost no work
  kCollectives  // each, in many sizes, waited for
};
std::string_view ProbeName(Probe probe);  // "copy"
StepProgram ProbeProgram(Probe probe, const RunSpec& spec, bool small = false);

}  // namespace ridgeline::engine
