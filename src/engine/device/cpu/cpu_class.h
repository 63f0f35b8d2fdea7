// The class of a processor. It decides which of our kernels run, and so which bits they give.
#pragma once

#include <cstdint>
#include <string_view>

namespace ridgeline::engine {

// Each class includes those before it. Within a class, results repeat to the bit, with any number of threads.
enum class CpuClass : uint8_t {
  kBaseline,    // vectors of plain C++; SSE4 in products if the CPU has it
  kAvx2,        // with FMA
  kAvx512,      // F, BW, DQ and VL
  kAvx512Bf16,  // multiplies pairs of bf16
  kAmx,         // multiplies tiles of bf16
};

std::string_view CpuClassName(CpuClass cpu_class);

// Returns this CPU's class, or a smaller one that RIDGELINE_CPU_CLASS names, so that this machine computes as one of
// that class. All kernels are chosen by it, Highway's too, so call it before the first of them runs. Throws
// Error(kInvalid) if the variable names no class, or one that this CPU does not have.
CpuClass ThisCpuClass();

}  // namespace ridgeline::engine
