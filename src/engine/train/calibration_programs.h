// What `ridgeline-train --calibrate` times: steps of small models, and programs of a few calls, chosen so that every op
// is seen in every format over the shapes that steps on this kind of device have.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/step/program.h"
#include "ridgeline/run.h"

namespace ridgeline {

// Steps, of one rank: each precision with shapes from small to large, families, optimizers and what else decides which
// calls a step has taking turns. Any first part of them has some of each. `base`: device, gpu. Larger ones for GPUs,
// but where they are to be `small`, and few, as for one that is emulated.
std::vector<RunSpec> CalibrationSteps(const RunSpec& base, bool small = false);

// The same between all ranks of `base`, sharded and not: what collectives come to inside of steps.
std::vector<RunSpec> CalibrationRankSteps(const RunSpec& base, bool small = false);

// One op many times, as a program without a model. `spec` says for which device.
enum class Probe : uint8_t {
  kCopy,        // two large tensors added into a third
  kLaunch,      // calls that have next to nothing to do
  kCollectives  // each, of many sizes, waited for
};
std::string_view ProbeName(Probe probe);  // "copy"
StepProgram ProbeProgram(Probe probe, const RunSpec& spec, bool small = false);

}  // namespace ridgeline
