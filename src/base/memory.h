// The memory a new process may take here.
#pragma once

#include <cstdint>
#include <filesystem>

namespace ridgeline {

// The least of MemAvailable and what each cgroup above us leaves (v2 and v1; its page cache counts as free, since it
// is given back when needed). INT64_MAX where nothing of that can be read. `root` is "/" but in tests.
int64_t AvailableMemoryBytes(const std::filesystem::path& root = "/");

}  // namespace ridgeline
