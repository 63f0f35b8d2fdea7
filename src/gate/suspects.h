// `ridgeline gate --confirm`: measures only the suspects again.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "regress/gate.h"

namespace ridgeline::gate {

struct ConfirmOptions {
  std::string sweep;                            // the sweep's file; empty: nothing is measured again
  std::string launcher;                         // the launcher to use; empty: the sweep's
  std::vector<std::filesystem::path> trainers;  // folders with definitions
  std::string base_build;                       // the folder with the older programs
  std::string head_build;                       // with the gated programs; empty: the sweep's trainers
  std::filesystem::path turns;                  // the folder for the measurements
};

// Measures the gate's suspects again, with base and head in turns, and lets the gate decide by the result. Measurements
// that exist for this head and these builds are reused. Returns false if it was interrupted; the next call resumes it.
bool ConfirmSuspects(const ConfirmOptions& options, regress::Gate& gate);

}  // namespace ridgeline::gate
