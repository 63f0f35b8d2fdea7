// The memory that a new process may use here.
#pragma once

#include <cstdint>
#include <filesystem>

namespace ridgeline {

// The least of MemAvailable and of what each cgroup above us leaves (v2 and v1). Its page cache counts as free, because
// the kernel gives it back when needed. INT64_MAX if nothing of that can be read. `root` is "/" except in tests.
int64_t AvailableMemoryBytes(const std::filesystem::path& root = "/");

}  // namespace ridgeline
