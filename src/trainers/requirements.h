// Evaluates what a definition says about a point's values: how ranks are split, and what it requires.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ridgeline/run.h"
#include "run/spec.h"
#include "trainers/invocation.h"

namespace ridgeline::trainers {

// The value of a field of the point, including the trainer's own fields. Nothing if there is no such field.
std::optional<FieldValue> ValueOfField(const Invocation& invocation, const RunSpec& spec, std::string_view name);

// Whether a condition holds for the point. Throws Error(kInvalidInput) if a field in it has no value to compare.
bool Holds(const Expression& condition, const Invocation& invocation, const RunSpec& spec);

// The number of data-parallel ranks with this trainer. Throws Error(kInvalidInput) unless the definition gives a whole
// number from 1 to the number of ranks.
int64_t DataParallelRanks(const Invocation& invocation, const RunSpec& spec);

// The requirements of the trainer called `name` that the point does not meet, each at a field that causes it. Fields
// that are as in `plain`, the point with default values, come last.
std::vector<Problem> WhyUnmet(const std::string& name, const Invocation& invocation, const RunSpec& spec,
                              const RunSpec& plain);

}  // namespace ridgeline::trainers
