// `ridgeline gate --calibrate`: how often the gate is wrong here.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace ridgeline {

struct CalibrateOptions {
  std::string sweep;                            // its file; empty: nothing is calibrated
  std::string launcher;                         // by which; empty: the sweep's
  std::vector<std::filesystem::path> trainers;  // folders with definitions
  int64_t nights = 20;
};

// Measures the sweep's points by the same programs, again and again, and says what the gate would have made of it.
// Returns the exit code.
int CalibrateGate(const CalibrateOptions& options);

}  // namespace ridgeline
