// Jobs' keys, which become names of files and of a scheduler's objects.
#pragma once

#include <string>

namespace ridgeline::plugin {

// "rl-" and lower-case letters, digits and -, short enough for every scheduler's names: never a path.
bool IsKey(const std::string& text);

// Throws Failure where `text` is no key.
void CheckKey(const std::string& text);

}  // namespace ridgeline::plugin
