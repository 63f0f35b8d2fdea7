// Which instruction sets the kernels are compiled for: AVX2, AVX-512 and any CPU. Include it before Highway.
#pragma once

#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
// For any CPU: vectors of plain C++. Highway disables them for GCC 12.2, which miscompiles some products of 16-bit
// integers (GCC bug 106322). There are none here, and the tests run on every target.
#define HWY_BROKEN_EMU128 0

#include <hwy/targets.h>

#include "engine/device/cpu/cpu_class.h"

namespace ridgeline::engine {

// Call it before the first HWY_DYNAMIC_DISPATCH. Then kernels keep to the requested class of CPU, and an address from
// HWY_DYNAMIC_DISPATCH is the kernel's, not that of a function that detects the CPU at every call.
inline void ChooseTarget() {
  ThisCpuClass();
  if (!hwy::GetChosenTarget().IsInitialized()) hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace ridgeline::engine
