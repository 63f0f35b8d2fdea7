// The reasons that lower a GPU's clocks, under nvidia-smi's names (clocks_event_reasons.NAME).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "ridgeline/run.h"

namespace ridgeline {

struct GpuClockLimit {
  std::string_view name;   // "sw_power_cap"
  uint64_t nvml_bit;       // the bit in NVML's mask
  std::string_view words;  // "its power limit"
  // True for limits that slow down a sound GPU with work. The others apply to a GPU that idles, was told to be slower,
  // or draws all the power that it may.
  bool costs_speed;
};

// The number of known limits.
inline constexpr size_t kGpuClockLimits = 9;
std::span<const GpuClockLimit, kGpuClockLimits> GpuClockLimits();

// The active limits of `gpu` that cost speed, most frequent first: "its heat, a slowdown of the hardware". Unknown
// names of limits are left out. Empty if there is none.
std::string WhatThrottled(const GpuFigures& gpu);

}  // namespace ridgeline
