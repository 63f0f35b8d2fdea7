// The CPU kernels of every op that a step records.
#pragma once

#include "engine/device/cpu/kernel.h"

namespace ridgeline::engine {

const CpuKernelTable& CpuKernels();

}  // namespace ridgeline::engine
