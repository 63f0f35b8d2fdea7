// Measures the device that it runs on, call by call, for who predicts what other steps take there (docs/prediction.md).
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/json.h"
#include "engine/train/device.h"
#include "ridgeline/run.h"

namespace ridgeline {

inline constexpr int64_t kCalibrationVersion = 1;

struct DeviceCalibrationOptions {
  double budget_s = 80;  // what comes after that is left out; shorter: fewer steps of each program, then fewer programs
  int64_t rounds = 3;    // in which every program has its turn, so that what disturbs one for a while does not make it
  bool small = false;    // what is measured is as small as can be, for a device that is emulated
  std::function<void(int64_t done, int64_t total)> on_progress;  // may be empty
  DeviceMaker open_cuda;                                         // empty: this program has no CUDA device
  DeviceOptions device;
};

// `base`: device, gpu and ranks; as the rank that the environment says this process is. Of several ranks on CPUs each
// trains by itself at the same time, on its share of the cores, before they do so together. The document that comes of
// it has the time of a step of each program, and of its calls by class and dimensions (engine/step/call_shape.h): the
// middle one of all steps. All ranks return, and rank 0's document counts.
Json CalibrateDevice(const RunSpec& base, const DeviceCalibrationOptions& options);

}  // namespace ridgeline
