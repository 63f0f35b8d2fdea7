// Whether what the kernel counts of a cgroup is ours.
#pragma once

#include <filesystem>

namespace ridgeline {

// Whether nobody is in the cgroup of this folder but this process and those that started it. Asked while nothing that
// we start runs.
bool OnlyWeAreIn(const std::filesystem::path& cgroup);

}  // namespace ridgeline
