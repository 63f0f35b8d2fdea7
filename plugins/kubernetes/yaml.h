// Documents as YAML that people read and kubectl takes.
#pragma once

#include <string>
#include <vector>

#include "common/failure.h"

namespace ridgeline::kubernetes {

// One document, in block style. A string is written plain only where no YAML, of 1.1 or 1.2, could take it for anything
// else; with several lines as a literal block; else in double quotes.
std::string ToYaml(const plugin::Json& document);

}  // namespace ridgeline::kubernetes
