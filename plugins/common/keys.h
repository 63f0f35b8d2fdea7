// Jobs' keys, which become names of files and of a scheduler's objects.
#pragma once

#include <cstdint>
#include <string>

#include "common/failure.h"

namespace ridgeline::plugin {

// "rl-" and lower-case letters, digits and -, short enough for every scheduler's names: never a path.
bool IsKey(const std::string& text);

// A sweep's name as a part of other names: letters, digits, _ and -, no more than 40, never empty.
std::string Label(const std::string& sweep);

// "demo.2-nodes.rl-0a1b", of a job as a launcher request has it: by which a person tells rendered files apart. `nodes`:
// those of the launcher's own settings; 0: the job's.
std::string FileNameOf(const Json& job, int64_t nodes);

// Throws Failure where `text` is no key.
void CheckKey(const std::string& text);

}  // namespace ridgeline::plugin
