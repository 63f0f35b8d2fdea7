// Writes documents as YAML that people read and kubectl accepts.
#pragma once

#include <string>
#include <vector>

#include "common/failure.h"

namespace ridgeline::kubernetes {

// Returns one document, in block style. A string is plain only if neither YAML 1.1 nor 1.2 could take it for anything
// else. Text of several lines is a literal block, and all else is in double quotes.
std::string ToYaml(const plugin::Json& document);

}  // namespace ridgeline::kubernetes
