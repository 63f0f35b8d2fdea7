// The trainer's command line: a RunSpec file, RunSpec fields as flags, or the flags of NVIDIA's fsdp.py. Without a
// file, a flag may also come from the environment, as SageMaker hands over hyperparameters: SM_HP_BATCH_SIZE for
// --batch-size.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "engine/train/training_device.h"
#include "engine/train/verify.h"
#include "ridgeline/run.h"

namespace ridgeline::engine {

struct TrainCommand {
  std::filesystem::path spec_file;    // --spec
  std::filesystem::path result_file;  // --result
  std::filesystem::path resume;       // --resume
  std::filesystem::path verify_case;  // --verify
  bool profile = false;
  std::filesystem::path export_trace;  // --export-trace; empty: none
  bool gpus = false;                   // print the GPUs here
  bool budget = false;                 // print a step's budget, and train nothing
  double calibrate_s = 0;              // --calibrate: time this device for so long, and train nothing; 0: train
  bool fsdp = false;                   // print fsdp.py's lines
  std::optional<RunSpec> spec;         // from flags; nothing if spec_file or verify_case is given
  VerifyOptions verify;
  DeviceOptions device;
};

// Returns nothing if it printed help or the version as asked. Throws Error(kUsage, kInvalidInput).
std::optional<TrainCommand> ParseTrainCommand(int argc, const char* const* argv);

}  // namespace ridgeline::engine
