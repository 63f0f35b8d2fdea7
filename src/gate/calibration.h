// `ridgeline gate --calibrate`: measures how often the gate is wrong on this system.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace ridgeline::gate {

struct CalibrateOptions {
  std::string sweep;                            // the sweep's file; empty: nothing is calibrated
  std::string launcher;                         // the launcher to use; empty: the sweep's
  std::vector<std::filesystem::path> trainers;  // folders with definitions
  int64_t nights = 20;
  std::filesystem::path turns;  // the folder for the measurements
};

// Measures the sweep's points repeatedly with the same programs, and reports how the gate would have judged the runs.
// Returns the exit code.
int CalibrateGate(const CalibrateOptions& options);

}  // namespace ridgeline::gate
