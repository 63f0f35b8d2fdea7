// Turns a trainer's measurements of a device (engine/train/calibrate.h) into a file for `devices/`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "predict/device.h"
#include "ridgeline/run.h"

namespace ridgeline::predict {

// A measured call.
struct CalibrationCall {
  std::string of;  // its class (engine/step/call_shape.h)
  MeasuredCall call;
  std::string format;  // number format of its products
  double flops = 0;
  double bytes = 0;
};

struct CalibrationProgram {
  std::string kind;  // "step", "copy", "launch" or "collectives"
  RunSpec spec;      // if kind is "step"
  double step_ns = 0;
  double first_ns = 0;
  std::vector<CalibrationCall> calls;
};

// What one start of the trainer measured.
struct CalibrationRun {
  std::string device;  // product name
  std::string gpu;     // as in RunSpec; none: a processor
  int64_t ranks = 1;
  int64_t threads = 1;  // per rank
  int64_t memory_bytes = 0;
  std::string build;  // "0.1.0, commit 0123456789ab"
  double seconds = 0;
  int64_t left_out = 0;  // programs skipped for want of time
  std::vector<CalibrationProgram> programs;
};

// Throws Error(kInvalidInput), naming `source`, if the document is not a calibration.
CalibrationRun DecodeCalibration(const Json& document, const std::string& source);

// How well the step model predicts each program from the others.
struct CalibrationCheck {
  int64_t ranks = 1;
  int64_t programs = 0;   // those within the others' measured range, or all if these are too few
  double mean_error = 0;  // mean |predicted / measured - 1|
  double p90_error = 0;
};

struct CalibrationEntry {
  std::string name;
  std::string about;
  std::string date;         // "2026-11-26"
  std::string device = {};  // the entry of the same GPU that has the other figures; may be empty
  double others_share = 0;  // share of the cores' time that other processes took; 0: negligible
};

struct CalibratedDevice {
  std::string text;  // YAML of the file
  std::vector<CalibrationCheck> checks;
};

// `runs`: the run with one rank first. Throws Error(kInvalidInput) if they measured too little for an entry.
CalibratedDevice MakeDevice(const CalibrationEntry& entry, const std::vector<CalibrationRun>& runs,
                            const std::vector<std::filesystem::path>& folders);

}  // namespace ridgeline::predict
