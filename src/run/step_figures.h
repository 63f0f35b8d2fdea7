// Figures from the times of a run's steps: the step's median and spread, and throughput. Our trainer's figures and
// those derived for a trainer that reports only times follow the same rule.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ridgeline/run.h"

namespace ridgeline {

// The tokens of the point's step over all ranks. Limited to the largest integer for unrealistic shapes.
// `data_parallel`: for a trainer that splits its ranks otherwise.
int64_t TokensAStep(const RunSpec& spec, int64_t data_parallel);
int64_t TokensAStep(const RunSpec& spec);

// Why a step's tokens or bytes are too many to count, although every field is in its range; nothing if they are not.
std::string SizeProblem(const RunSpec& spec);

// Fills step_ns.median_ns, p95_ns, cv and measured_steps from the times of the measured steps (without any, they stay
// as they are). Fills the throughputs from the median, from all of step_ns.all_ns and from tokens_per_step.
void FillStepFigures(std::vector<int64_t> measured_ns, RunResult& result);

// Does the same for figures that the result lacks. The measured steps are those of all_ns after the point's warm-up,
// and tokens_per_step is the point's.
void DeriveStepFigures(const RunSpec& spec, RunResult& result);

}  // namespace ridgeline
