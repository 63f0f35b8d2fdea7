// How other programs go about the same step: what of the clock's and the planner's answers is theirs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ridgeline/run.h"

namespace ridgeline {

// What steps get of what a device has: shares of its ceilings and bandwidths. A description may say its own
// (`efficiency`); these are for those that don't, and of programs that were published. Half of the figures set four of
// them (tests/predict/published_test.cc); of the others those figures tell nothing, for communication and passes over
// memory are next to nothing of their steps.
struct Efficiency {
  double products = 0.80;      // of the ceiling of their format, by products of a good shape, of 16 bits: set
  double products_fp8 = 0.83;  // of 8: set
  double products_fp4 = 0.60;  // of 4: assumed
  double attention = 0.44;     // of the ceiling of 16 bits; the backward pass gets three quarters of that: set
  double memory = 0.90;        // of the bandwidth: H200s were seen to copy 4.3 of 4.8 TB/s
  double link = 0.80;          // assumed
  double network = 0.80;       // assumed
  double power = 0.79;         // exponent: what a GPU held to a share of its rated power keeps of its ceilings: set
};

// This engine's: of ten steps of an H200 (docs/prediction.md), which are no forecast of others.
inline constexpr Efficiency kEfficiencyHere = {
    .products = 0.95, .products_fp8 = 0.97, .attention = 0.66, .memory = 0.70};

struct Framework {
  std::string_view name = "ridgeline";
  std::string_view about = "this engine";
  Efficiency efficiency = kEfficiencyHere;
  std::string_view efficiency_from = "what they got of an H200";  // what steps get of a device, in words
  // How often it moves what passes over memory (all but products and attention) move here.
  double passes = 1;
  // Shares of what is computed again with `checkpointing: full`, where it keeps some of that.
  double recomputed_products = 1;
  double recomputed_attention = 1;
  double recomputed_passes = 1;
  double first_iteration_s = 0.2;  // what the first one takes more, where the device does not say
  double start_s = 2;              // before it, on a GPU; an H200's processes took one to three seconds
  // The most that a GPU holds; nullptr: what the planner finds. Throws Error(kInvalidInput) for a step that it does not
  // know.
  int64_t (*peak_bytes)(const RunSpec& spec) = nullptr;
};

// "ridgeline" or "te-fsdp". Throws Error(kUsage) with the nearest where there is none.
const Framework& FindFramework(const std::string& name);

}  // namespace ridgeline
