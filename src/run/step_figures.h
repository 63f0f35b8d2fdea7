// What the times of a run's steps come to: the step's median and spread, and throughput. Our trainer's figures and
// those derived for a trainer that gives times alone are made by the same rule.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ridgeline/run.h"

namespace ridgeline {

// What the point asks of a step, of all ranks; as many as there are numbers, where a shape nobody runs asks for more.
// `data_parallel`: where a trainer splits its ranks otherwise.
int64_t TokensAStep(const RunSpec& spec, int64_t data_parallel);
int64_t TokensAStep(const RunSpec& spec);

// Every field may be in its range, and their product beyond what is counted anywhere, tokens and bytes of a step: why,
// or nothing where it is not.
std::string SizeProblem(const RunSpec& spec);

// Fills step_ns.median_ns, p95_ns, cv and measured_steps from the times of the measured steps (of none they stay as
// they are), and the throughputs from the median, from all of step_ns.all_ns and from tokens_per_step.
void FillStepFigures(std::vector<int64_t> measured_ns, RunResult& result);

// The same for what the result does not say: the measured steps are those of all_ns after the point's warm-up, and
// tokens_per_step is the point's.
void DeriveStepFigures(const RunSpec& spec, RunResult& result);

}  // namespace ridgeline
