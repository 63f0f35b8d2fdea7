// What a definition says of a point's values alone: how its ranks are split, and what it needs of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ridgeline/run.h"
#include "run/spec.h"
#include "trainers/invocation.h"

namespace ridgeline {

// What the point has in a field, the trainer's own among them; nothing where there is none of that name.
std::optional<FieldValue> ValueOfField(const Invocation& invocation, const RunSpec& spec, std::string_view name);

// Whether a condition holds for the point. Throws Error(kInvalidInput) where a field in it has no value to compare.
bool Holds(const Expression& condition, const Invocation& invocation, const RunSpec& spec);

// The ranks that have batches of their own with this trainer. Throws Error(kInvalidInput) where its definition has no
// whole number of them for the point, of at least 1 and no more than all.
int64_t DataParallelRanks(const Invocation& invocation, const RunSpec& spec);

// What the trainer called `name` needs of the point and does not have, each at a value that makes it so; what is as in
// `plain`, the point of which nothing was said, comes last.
std::vector<Problem> WhyUnmet(const std::string& name, const Invocation& invocation, const RunSpec& spec,
                              const RunSpec& plain);

}  // namespace ridgeline
