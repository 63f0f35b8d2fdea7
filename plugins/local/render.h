#pragma once

#include <string>

#include "common/failure.h"

namespace ridgeline::local {

// A shell script that runs the jobs one after another: what a person could start by hand.
std::string RenderScript(const plugin::Json& jobs);

}  // namespace ridgeline::local
