#include "run/gpu_limits.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "base/text.h"

namespace ridgeline {
namespace {

// The bits are NVML's, nvmlClocksEventReason*.
constexpr GpuClockLimit kLimits[kGpuClockLimits] = {
    {"gpu_idle", 0x1, "nothing to do", false},
    {"applications_clocks_setting", 0x2, "clocks that were set", false},
    {"sw_power_cap", 0x4, "its power limit", false},  // large products always reach it on a sound card
    {"hw_slowdown", 0x8, "a slowdown of the hardware", true},
    {"sync_boost", 0x10, "the clocks of others it is bound to", false},
    {"sw_thermal_slowdown", 0x20, "its heat", true},
    {"hw_thermal_slowdown", 0x40, "the hardware's heat limit", true},
    {"hw_power_brake_slowdown", 0x80, "the power supply's brake", true},
    {"display_clock_setting", 0x100, "the display's clocks", false},
};

}  // namespace

std::span<const GpuClockLimit, kGpuClockLimits> GpuClockLimits() { return kLimits; }

std::string WhatThrottled(const GpuFigures& gpu) {
  std::vector<std::pair<int64_t, std::string>> held;
  for (const GpuClockLimit& limit : kLimits) {
    const auto found = gpu.clock_limits.find(std::string(limit.name));
    if (!limit.costs_speed || found == gpu.clock_limits.end() || found->second == 0) continue;
    held.emplace_back(found->second, limit.words);
  }
  std::ranges::stable_sort(held, std::ranges::greater(), [](const auto& each) { return each.first; });
  std::vector<std::string> words;
  std::ranges::transform(held, std::back_inserter(words), [](const auto& each) { return each.second; });
  return Join(words, ", ");
}

}  // namespace ridgeline
