// Shared beginnings for tests of plans.
#pragma once

#include <cstdint>
#include <string>

#include "launch/launcher.h"
#include "plan/memory_limit.h"
#include "predict/memory_forecast.h"
#include "sweep/sweep.h"

namespace ridgeline::plan {

inline constexpr int64_t kMegabyte = 1'000'000;

inline sweep::Sweep ParseText(const std::string& text) {
  static const auto describe = launch::AskLaunchers(RIDGELINE_PLUGIN_DIR);
  sweep::Sweep sweep = sweep::ParseSweep("name: test\n" + text, "s.yaml");
  sweep.launch.describe = describe;
  return sweep;
}

// A node that leaves this much to the slab of one process. `basis`: how that is known.
inline NodeMemory NodeWith(int64_t slab_bytes, const std::string& basis = "free here") {
  return {slab_bytes + predict::kProcessBaseBytes, basis};
}

}  // namespace ridgeline::plan
