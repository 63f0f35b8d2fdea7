// What ridgeline-train does with its command line.
#pragma once

#include "engine/train/device.h"

namespace ridgeline {

// The exit code: TrainerExit for a run; 0 or 1 for --verify. A program without a CUDA device of its own (`cuda` is
// empty) becomes ridgeline-train-cuda, where that lies beside it and the spec asks for the device. Throws Error for a
// command line or file that is wrong.
int RunTrainCommand(int argc, char* const* argv, const CudaSupport& cuda = {});

// The same as a program's main, which says on stderr what was wrong.
int TrainMain(int argc, char* const* argv, const CudaSupport& cuda = {});

}  // namespace ridgeline
