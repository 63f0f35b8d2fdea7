// From what a trainer measured of a device (engine/train/calibrate.h) to an entry of `devices/`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "predict/device.h"
#include "ridgeline/run.h"

namespace ridgeline {

// A call that was measured, and what it is.
struct CalibrationCall {
  std::string of;  // its class
  MeasuredCall call;
  std::string format;  // that it multiplies
  double flops = 0;
  double bytes = 0;
};

struct CalibrationProgram {
  std::string kind;  // "step", "copy", "launch" or "collectives"
  RunSpec spec;      // of a step
  double step_ns = 0;
  double first_ns = 0;
  std::vector<CalibrationCall> calls;
};

// Of one start of the trainer, with so many ranks.
struct CalibrationRun {
  std::string device;  // as its maker calls it
  std::string gpu;     // the spec's name for it; none: a processor
  int64_t ranks = 1;
  int64_t threads = 1;  // of a rank
  int64_t memory_bytes = 0;
  std::string build;  // "0.1.0, commit 0123456789ab"
  double seconds = 0;
  int64_t left_out = 0;  // programs for which there was no time
  std::vector<CalibrationProgram> programs;
};

// Throws Error(kInvalidInput) naming `source` where it is no such document.
CalibrationRun DecodeCalibration(const Json& document, const std::string& source);

// How the clock does on programs that are predicted from the others.
struct CalibrationCheck {
  int64_t ranks = 1;
  int64_t programs = 0;   // whose calls lie between those of the others, where there are enough such; else all
  double mean_error = 0;  // of the absolute errors
  double p90_error = 0;
};

struct CalibrationEntry {
  std::string name;
  std::string about;
  std::string date;         // "2026-11-26"
  std::string device = {};  // an entry that says the rest of the same GPU; empty: there is none
  double others_share = 0;  // of the cores' time, taken by others meanwhile; 0: none to speak of
};

struct CalibratedDevice {
  std::string text;  // of the file
  std::vector<CalibrationCheck> checks;
};

// `runs`: the one with one rank first. Throws Error(kInvalidInput) where they measured too little to make an entry.
CalibratedDevice MakeDevice(const CalibrationEntry& entry, const std::vector<CalibrationRun>& runs,
                            const std::vector<std::filesystem::path>& folders);

}  // namespace ridgeline
