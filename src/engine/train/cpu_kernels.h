// The CPU kernels of everything that a step records.
#pragma once

#include "engine/device/cpu/kernel.h"

namespace ridgeline {

const CpuKernelTable& CpuKernels();

}  // namespace ridgeline
