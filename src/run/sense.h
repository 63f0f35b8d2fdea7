// Whether the figures that another's trainer gives can all be true: each is right by the table (figures.h), and they
// contradict neither each other nor the point. docs/trainer-contract.md lists these rules for who writes trainers.
#pragma once

#include <string>

#include "ridgeline/run.h"

namespace ridgeline {

// All optimizer steps of a run of the point, warm-up included.
int64_t StepsOf(const RunSpec& spec);

// The first contradiction, as a sentence; empty where there is none. A figure that was not given contradicts nothing.
std::string Contradiction(const RunSpec& spec, const RunResult& result);

// What an `ok` cannot do without, and this one has not; empty where it has all. Of a point that is only planned the
// plan, of any other how fast it was.
std::string MissingOfOk(const RunSpec& spec, const RunResult& result);

}  // namespace ridgeline
