// Keys of jobs, which become names of files and of a scheduler's objects.
#pragma once

#include <cstdint>
#include <string>

#include "common/failure.h"

namespace ridgeline::plugin {

// "rl-" and lower-case letters, digits and -. Short enough for every scheduler's names, and never a path.
bool IsKey(const std::string& text);

// A sweep's name as a part of other names: at most 40 letters, digits, _ and -; never empty.
std::string Label(const std::string& sweep);

// Returns "demo.2-nodes.rl-0a1b" for a job from a launcher's request. It tells rendered files apart for people.
// `nodes`: the number from the launcher's own settings; 0: the job's.
std::string FileNameOf(const Json& job, int64_t nodes);

// Throws Failure if `text` is not a key.
void CheckKey(const std::string& text);

}  // namespace ridgeline::plugin
