// `ridgeline gate --confirm`: suspects, and only they, are measured again.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "regress/gate.h"

namespace ridgeline {

struct ConfirmOptions {
  std::string sweep;                            // its file; empty: nothing is measured again
  std::string launcher;                         // by which; empty: the sweep's
  std::vector<std::filesystem::path> trainers;  // folders with definitions
  std::string base_build;                       // the folder with the older programs
  std::string head_build;  // and with those that were gated; empty: the trainers that the sweep has
};

// Measures the gate's suspects again, base and head in turns, and has the gate decide by that. What was measured for
// this head and these builds before is not measured again. False where it was interrupted: the next goes on.
bool ConfirmSuspects(const ConfirmOptions& options, Gate& gate);

}  // namespace ridgeline
