// Runs ridgeline-train's command line.
#pragma once

#include "engine/train/training_device.h"

namespace ridgeline::engine {

// Returns the exit code: TrainerExit for a run; 0 or 1 for --verify. If this program has no CUDA device of its own
// (`cuda` is empty) and the spec asks for one, it becomes ridgeline-train-cuda, which lies beside it. Throws Error if
// the command line or a file is wrong.
int RunTrainCommand(int argc, char* const* argv, const CudaSupport& cuda = {});

// The same as a program's main, which reports errors on stderr.
int TrainMain(int argc, char* const* argv, const CudaSupport& cuda = {});

}  // namespace ridgeline::engine
