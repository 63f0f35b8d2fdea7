// Names for the points of a list (run/point_name.h).
#pragma once

#include <span>
#include <string>
#include <vector>

namespace ridgeline::regress {

// For each point, from its spec (canonical JSON): the fields in which the points differ, "batch_size=8,
// precision=bf16". Omits fields that follow from the model or the precision. If no field differs, the model. Throws
// Error(kInvalidInput) for an invalid spec.
std::vector<std::string> PointNames(std::span<const std::string> specs);

}  // namespace ridgeline::regress
