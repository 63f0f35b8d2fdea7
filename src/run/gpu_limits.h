// What may hold a GPU's clocks down, by the names that nvidia-smi has for it (clocks_event_reasons.NAME).
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
  uint64_t nvml_bit;       // in NVML's mask of them
  std::string_view words;  // "its power limit"
  bool costs_speed;        // of a sound GPU that has work: the others hold for one that idles, was told to be slower,
                           // or draws all that it may
};

// All that are known.
inline constexpr size_t kGpuClockLimits = 9;
std::span<const GpuClockLimit, kGpuClockLimits> GpuClockLimits();

// Those that cost speed, of what `gpu` says held, the most frequent first: "its heat, a slowdown of the hardware".
// Another's name for a limit is not among them. Empty where there is none.
std::string WhatThrottled(const GpuFigures& gpu);

}  // namespace ridgeline
