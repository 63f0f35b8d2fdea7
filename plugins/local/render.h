#pragma once

#include <string>

#include "common/failure.h"

namespace ridgeline::local {

// Returns a shell script that runs the jobs one after another, for a person to start by hand.
std::string RenderScript(const plugin::Json& jobs);

}  // namespace ridgeline::local
