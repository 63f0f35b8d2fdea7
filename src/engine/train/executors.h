// The devices that a step can run on: the one place of the trainer that knows them.
#pragma once

#include <cstdint>
#include <memory>

#include "engine/comm/communicator.h"
#include "engine/device/executor.h"
#include "engine/step/program.h"

namespace ridgeline {

// What runs the program on the device that its spec names. Both must outlive it. Throws Error(kOutOfMemory) where the
// slab does not fit.
std::unique_ptr<Executor> MakeExecutor(const StepProgram& program, Communicator& communicator);

// What a new slab here may take, in bytes.
int64_t AvailableSlabBytes();

}  // namespace ridgeline
