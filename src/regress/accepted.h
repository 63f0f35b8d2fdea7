// Subtracts accepted changes from the references of a gate, so that a cell is judged by what came later.
#pragma once

#include <string>

#include "regress/gate.h"

namespace ridgeline::regress {

// Standard errors from a change to the upper end of its 95 % interval.
inline constexpr double kAcceptedErrors = 1.96;

// Measurements from before an accepted change count as if they had it: longer by its share, and larger.
void ShiftToAccepted(GateSides& sides);

// The accepted changes that this base build lacks, for a finding that was measured in turns with it.
std::vector<TakenChange> TakenInTurns(const GateFinding& finding, const std::string& base_build);

// All of them combined, as a logarithm.
double LogOfTaken(const std::vector<TakenChange>& taken);

// Adds what was subtracted to each finding's words. Call it once, when all is decided.
void NameTakenChanges(Gate& gate);

}  // namespace ridgeline::regress
