// Turns the log of one run of a definition's trainer into a RunResult.
#pragma once

#include <string>

#include "ridgeline/run.h"
#include "trainers/reading.h"

namespace ridgeline::trainers {

// `reading`: of a run of `spec`. It says how the run ended; without an end the run has crashed. `life_ns`: how long the
// process lived; 0: unknown. Figures that were not found stay 0, "not taken". The result is `invalid` if figures show
// another model than the spec's, if times exceed the process's life, or if fewer steps were measured than the spec asks
// for. It is `crashed` if figures contradict each other, or if an ok run has neither time nor throughput. In both cases
// the message says why, and the figures are left out.
//
// Times: a series with a value a step becomes the result's series. A value logged every K steps stands for K steps, and
// is steady if all of them come after the warm-up. Without step numbers, the warm-up's share of the values, the first
// ones, is left out. A single value may cover all steps, including the first; like a mean over all steps, it is a cold
// figure and says nothing about steady speed. Tokens/s count if there is no time.
RunResult ResultOf(const Trainer& trainer, const Reading& reading, const RunSpec& spec, int64_t life_ns = 0);

// Relative difference allowed between parameter counts: printed numbers are rounded, and vocabularies are padded.
inline constexpr double kParametersAgree = 0.01;
// Range of (printed TFLOP/s * step time) / the model's FLOPs. Conventions differ in the causal mask and in
// recomputation, which adds up to a third. Another model differs by more.
inline constexpr double kLeastOfFlops = 0.7;
inline constexpr double kMostOfFlops = 1.6;
// By how much the steps of a run may seem to take longer than its process lived: clocks and printed numbers are
// inexact.
inline constexpr double kLongerThanLife = 1.05;
inline constexpr int64_t kLifeSlackNs = 1'000'000'000;
// If steps take less than 1 / kShareOfLife of the process's life, a warning asks whether the unit is right.
inline constexpr double kShareOfLife = 100;
// Evidence: why a run may have more measured steps than are counted.
inline constexpr const char* kStepsAtLeastEvidence = "steps_at_least";
// Evidence: the warning about the unit.
inline constexpr const char* kUnitEvidence = "unit_question";

}  // namespace ridgeline::trainers
