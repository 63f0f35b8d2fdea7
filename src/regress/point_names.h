// What tells points of a list apart, in words.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace ridgeline {

// Of each point, from its spec (canonical JSON): the fields in which the points differ, "batch_size=8, precision=bf16".
// What follows from the model or from the precision is not said beside it. Where none differ, the model. Throws
// Error(kInvalidInput) for a spec that is none.
std::vector<std::string> PointNames(std::span<const std::string> specs);

}  // namespace ridgeline
