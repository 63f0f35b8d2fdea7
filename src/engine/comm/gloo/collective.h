// The collectives' CPU kernels.
#pragma once

#include "engine/device/cpu/kernel.h"

namespace ridgeline::engine {

void AddCollectivesCpu(CpuKernelTable& table);

}  // namespace ridgeline::engine
