// What of a processor decides which of our kernels run, and so which bits they give.
#pragma once

#include <cstdint>
#include <string_view>

namespace ridgeline {

// Each has what those before it have. Within a class results repeat to the bit, with any number of threads.
enum class CpuClass : uint8_t {
  kBaseline,    // vectors of plain C++; SSE4 in products where the CPU has it
  kAvx2,        // with FMA
  kAvx512,      // F, BW, DQ and VL
  kAvx512Bf16,  // multiplies pairs of bf16
  kAmx,         // multiplies tiles of bf16
};

std::string_view CpuClassName(CpuClass cpu_class);

// This CPU's class, or a smaller one that RIDGELINE_CPU_CLASS names, so that it computes as a machine of that class
// does. Kernels are chosen by it, Highway's too: to be asked before the first of them runs. Throws Error(kInvalid)
// where the variable names no class, or one that this CPU doesn't have.
CpuClass ThisCpuClass();

}  // namespace ridgeline
