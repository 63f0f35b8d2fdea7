// Which Ridgeline this is.
#pragma once

#include <cstdint>
#include <string_view>

namespace ridgeline {

extern const std::string_view kVersion;  // "0.1.0"

// The commit it was built from: 40 hexadecimal digits, "-dirty" appended where tracked files had been changed;
// "unknown" where the sources came without one.
std::string_view GitCommit();

// When that commit was made; 0 where that is unknown.
int64_t GitCommitUnixS();

}  // namespace ridgeline
