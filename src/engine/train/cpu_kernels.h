// The CPU kernels of every op that a step records.
#pragma once

#include "engine/device/cpu/kernel.h"

namespace ridgeline {

const CpuKernelTable& CpuKernels();

}  // namespace ridgeline
