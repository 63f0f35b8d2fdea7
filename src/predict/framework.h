// How other programs go about the same step: what of the clock's and the planner's answers is theirs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ridgeline/run.h"

namespace ridgeline {

struct Framework {
  std::string_view name = "ridgeline";
  std::string_view about = "this engine";
  // How often it moves what passes over memory (all but products and attention) move here.
  double passes = 1;
  // Shares of what is computed again with `checkpointing: full`, where it keeps some of that.
  double recomputed_products = 1;
  double recomputed_attention = 1;
  double recomputed_passes = 1;
  double first_iteration_s = 6.5;  // what the first one takes more, where the device does not say
  // The most that a GPU holds; nullptr: what the planner finds. Throws Error(kInvalidInput) for a step that it does not
  // know.
  int64_t (*peak_bytes)(const RunSpec& spec) = nullptr;
};

// "ridgeline" or "te-fsdp". Throws Error(kUsage) with the nearest where there is none.
const Framework& FindFramework(const std::string& name);

}  // namespace ridgeline
