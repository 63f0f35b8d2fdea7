// Which instruction sets the kernels are compiled for: AVX2, AVX-512 and any CPU. To be included before Highway.
#pragma once

#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
// For any CPU: vectors of plain C++. Highway refuses them to GCC 12.2, which miscompiles some products of 16-bit
// integers (GCC bug 106322); there are none here, and the tests run on every target.
#define HWY_BROKEN_EMU128 0

#include <hwy/targets.h>

#include "engine/device/cpu/cpu_class.h"

namespace ridgeline {

// To be called before the first HWY_DYNAMIC_DISPATCH: kernels keep to the class of CPU that was asked for, and an
// address it gives is the kernel's, not that of a function which asks the CPU at every call what it can.
inline void ChooseTarget() {
  ThisCpuClass();
  if (!hwy::GetChosenTarget().IsInitialized()) hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace ridgeline
