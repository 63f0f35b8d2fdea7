#pragma once

#include <string>
#include <vector>

#include "common/plugin_api.h"

namespace ridgeline::local {

// A shell script that runs the jobs one after another: what a person could start by hand.
std::string RenderScript(const plugin::Json& jobs);

// One word of a POSIX shell, whatever is in it.
std::string ShellQuote(const std::string& word);

}  // namespace ridgeline::local
