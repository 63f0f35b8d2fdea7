// Checks what a sweep asks of a launcher, before anything is submitted.
#pragma once

#include <vector>

#include "base/error.h"
#include "launch/launcher.h"
#include "sweep/sweep.h"
#include "yaml/yaml.h"

namespace ridgeline::launch {

// If the launcher can render, has it render a job of each rule, and of each set of rules that apply to a point
// together. Throws one Error(kInvalidInput) with all that it reports, at the setting's place or, for what concerns no
// single setting, at the rule (for a set, its last rule).
void CheckRules(const sweep::Sweep& sweep, Launcher& launcher);

// Has the launcher ask its scheduler whether it would take a job of the sweep's settings, and of each set of rules that
// apply to a point together. Throws one Error(kInvalidInput) with all that is refused, at the setting's place or, for a
// set of rules, at its last rule. REQUIRES: the launcher is available.
void CheckWithScheduler(const sweep::Sweep& sweep, Launcher& launcher);

// Returns what a launcher refuses, with the places in the sweep's file. A launcher's message has a line for each
// setting: "launch: slurm: partition is …". Faults that concern no setting of the file are at `otherwise`.
std::vector<yaml::Fault> RefusedSettings(const sweep::Launch& launch, const Error& error, const yaml::Place& otherwise);

}  // namespace ridgeline::launch
