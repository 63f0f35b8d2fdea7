// Measures the device on which it runs, call by call, to predict other steps there (docs/prediction.md).
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/json.h"
#include "engine/train/training_device.h"
#include "ridgeline/run.h"

namespace ridgeline::engine {

inline constexpr int64_t kCalibrationVersion = 1;

struct DeviceCalibrationOptions {
  double budget_s = 80;  // later work is left out; a shorter one means fewer steps of each program, then fewer programs
  int64_t rounds = 3;    // each program has a turn in each, so no passing disturbance decides its time
  bool small = false;    // measure as little as possible, for an emulated device
  std::function<void(int64_t done, int64_t total)> on_progress;  // may be empty
  DeviceMaker open_cuda;                                         // empty: this program has no CUDA device
  DeviceOptions device;
};

// Calibrates as the rank that the environment gives this process. `base`: device, gpu and ranks. Several ranks on CPUs
// train together, and also at the same time each by itself, on its share of the cores. The document has the times
// of a step of each program, and of its calls by class and dimensions (engine/step/call_shape.h): the median over all
// steps. All ranks return; rank 0's document counts.
Json CalibrateDevice(const RunSpec& base, const DeviceCalibrationOptions& options);

}  // namespace ridgeline::engine
