// Accepted changes, taken off what a gate is held to, so that a cell is judged by what came after.
#pragma once

#include <string>

#include "regress/gate.h"

namespace ridgeline {

// Standard errors from a change to the upper end of its interval of 95 %.
inline constexpr double kAcceptedErrors = 1.96;

// Measurements from before an accepted change count as if they had it: longer by its share, and larger.
void ShiftToAccepted(GateSides& sides);

// Of a finding that was measured in turns with this base build: the accepted changes that this build does not have.
std::vector<TakenChange> TakenInTurns(const GateFinding& finding, const std::string& base_build);

// All of them together, as a logarithm.
double LogOfTaken(const std::vector<TakenChange>& taken);

// Has each finding's words say what was taken off. To be called once, when all is decided.
void NameTakenChanges(Gate& gate);

}  // namespace ridgeline
