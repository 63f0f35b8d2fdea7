// The version of this Ridgeline.
#pragma once

#include <cstdint>
#include <string_view>

namespace ridgeline {

extern const std::string_view kVersion;  // "0.1.0"

// The commit that it was built from: 40 hexadecimal digits, with "-dirty" appended if tracked files had been changed;
// "unknown" if the sources came without one.
std::string_view GitCommit();

// When that commit was made; 0 if unknown.
int64_t GitCommitUnixS();

}  // namespace ridgeline
