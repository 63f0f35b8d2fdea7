// Checks what a sweep asks of a launcher, before anything is submitted.
#pragma once

#include <optional>
#include <string>

#include "launch/launcher.h"
#include "sweep/sweep.h"
#include "yaml/yaml.h"

namespace ridgeline {

// If the launcher can render, has it render a job of each rule, and of each set of rules that apply to a point
// together. Throws one Error(kInvalidInput) with all that it reports, at the place of the rule (for a set, of its last
// rule).
void CheckRules(const Sweep& sweep, Launcher& launcher);

// Has the launcher ask its scheduler whether it would take a job of the sweep's settings, and of each set of rules that
// apply to a point together. Throws one Error(kInvalidInput) with all that is refused, at the setting's place or, for a
// set of rules, at its last rule. REQUIRES: the launcher is available.
void CheckWithScheduler(const Sweep& sweep, Launcher& launcher);

// Returns where the sweep's file has the setting that a launcher's message names first ("launch: slurm: partition is
// …"). Returns nothing if it names none of the file's.
std::optional<Place> PlaceOfSetting(const Launch& launch, const std::string& message);

}  // namespace ridgeline
