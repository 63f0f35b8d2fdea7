// Checks whether the figures of another trainer can all be true. Each is valid by the table (figures.h); here they must
// contradict neither each other nor the point. docs/trainer-contract.md lists these rules for authors of trainers.
#pragma once

#include <string>
#include <string_view>

#include "ridgeline/run.h"

namespace ridgeline {

// What memory.device_peak_bytes counts (MemoryFigures::device_peak_kind).
inline constexpr std::string_view kAllocated = "allocated";  // what tensors took, as the trainer's allocator says
inline constexpr std::string_view kInUse = "in use";         // the card's memory in use, by any program
inline constexpr std::string_view kOfNvml = "NVML";  // the memory of the trainer's processes, as its driver says

// All optimizer steps of a run of the point, warm-up included.
int64_t StepsOf(const RunSpec& spec);

// The first contradiction, as a sentence; empty if there is none. A missing figure contradicts nothing.
std::string Contradiction(const RunSpec& spec, const RunResult& result);

// A sentence if the steady figures are of fewer measured steps than `measure: {min_steps}` requires. Empty if they are
// not, or if the number of steps is unknown.
std::string TooFewSteps(const RunSpec& spec, const RunResult& result);

// The figure that an `ok` needs and this result lacks; empty if it has all. A point that is only planned needs the
// plan, any other a speed.
std::string MissingOfOk(const RunSpec& spec, const RunResult& result);

}  // namespace ridgeline
