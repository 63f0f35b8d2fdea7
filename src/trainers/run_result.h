// What one run of a definition's trainer comes to: its log, read, as a RunResult.
#pragma once

#include <string>

#include "ridgeline/run.h"
#include "trainers/reading.h"

namespace ridgeline {

// `reading` is of a run of `spec` and says its end; what nothing tells of has crashed. What was not found stays 0,
// which is: not taken. Figures that say another model than the spec's are `invalid`; such that cannot all be true, and
// an ok without a time or a throughput, `crashed`; each in words.
//
// Times: a series of a value a step is the result's. Of one with fewer values, logged every few steps, those of the
// warm-up are left out by their steps' numbers, else as many of the first as are its share, and one at least. A single
// value is the median. Tokens a second count where there is no time. A mean over all steps, the first included, says
// how fast it is cold, and nothing of how fast it is steady.
RunResult ResultOf(const Trainer& trainer, const Reading& reading, const RunSpec& spec);

// What of a model another count of parameters may be: printed numbers are rounded, vocabularies padded.
inline constexpr double kParametersAgree = 0.01;
// Of the work that the printed TFLOP/s and the step's time come to, against the model's: conventions differ, by whether
// the causal mask counts, and by recomputation, which is up to a third more. Another model differs by more.
inline constexpr double kLeastOfFlops = 0.7;
inline constexpr double kMostOfFlops = 1.6;

}  // namespace ridgeline
