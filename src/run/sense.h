// Whether the figures that another's trainer gives can all be true: each is right by the table (figures.h), and they
// contradict neither each other nor the point. docs/trainer-contract.md lists these rules for who writes trainers.
#pragma once

#include <string>
#include <string_view>

#include "ridgeline/run.h"

namespace ridgeline {

// What memory.device_peak_bytes counts (MemoryFigures::device_peak_kind).
inline constexpr std::string_view kAllocated = "allocated";  // what tensors took, as the trainer's allocator says
inline constexpr std::string_view kInUse = "in use";         // of the card, whoever has it
inline constexpr std::string_view kOfNvml = "NVML";          // what the trainer's processes held, as its driver says

// All optimizer steps of a run of the point, warm-up included.
int64_t StepsOf(const RunSpec& spec);

// The first contradiction, as a sentence; empty where there is none. A figure that was not given contradicts nothing.
std::string Contradiction(const RunSpec& spec, const RunResult& result);

// Where the steady figures are of fewer measured steps than `measure: {min_steps}` asks for, that in a sentence; empty
// where they are not, and where nobody says of how many they are.
std::string TooFewSteps(const RunSpec& spec, const RunResult& result);

// What an `ok` cannot do without, and this one has not; empty where it has all. Of a point that is only planned the
// plan, of any other how fast it was.
std::string MissingOfOk(const RunSpec& spec, const RunResult& result);

}  // namespace ridgeline
