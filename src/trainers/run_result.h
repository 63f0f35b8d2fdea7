// What one run of a definition's trainer comes to: its log, read, as a RunResult.
#pragma once

#include <string>

#include "ridgeline/run.h"
#include "trainers/reading.h"

namespace ridgeline {

// `reading` is of a run of `spec` and says its end; what nothing tells of has crashed. `life_ns`: how long its process
// lived; 0: nobody knows. What was not found stays 0, which is: not taken. Figures that say another model than the
// spec's, times that the process did not live for, and fewer measured steps than the spec asks for are `invalid`; such
// that cannot all be true, and an ok without a time or a throughput, `crashed`; each in words, and without the figures.
//
// Times: a series of a value a step is the result's. A value that is logged every K steps stands for K steps, and is
// steady where all of them are behind the warm-up. Without steps' numbers as many of the first values are left out as
// are the warm-up's share. A single value may be of all steps, the first included: it says how fast the run is cold,
// and nothing of how fast it is steady, and so does a mean over all steps. Tokens a second count where there is no
// time.
RunResult ResultOf(const Trainer& trainer, const Reading& reading, const RunSpec& spec, int64_t life_ns = 0);

// What of a model another count of parameters may be: printed numbers are rounded, vocabularies padded.
inline constexpr double kParametersAgree = 0.01;
// Of the work that the printed TFLOP/s and the step's time come to, against the model's: conventions differ, by whether
// the causal mask counts, and by recomputation, which is up to a third more. Another model differs by more.
inline constexpr double kLeastOfFlops = 0.7;
inline constexpr double kMostOfFlops = 1.6;
// How much longer than its process's life the steps of a run may seem to take: clocks and printed numbers are not
// exact.
inline constexpr double kLongerThanLife = 1.05;
inline constexpr int64_t kLifeSlackNs = 1'000'000'000;
// Of its process's life, steps take one part in so many at least, or somebody is asked for the unit.
inline constexpr double kShareOfLife = 100;
// The evidence that says why a run may have more measured steps than are counted.
inline constexpr const char* kStepsAtLeastEvidence = "steps_at_least";
// The evidence that asks.
inline constexpr const char* kUnitEvidence = "unit_question";

}  // namespace ridgeline
