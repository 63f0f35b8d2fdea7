// Checks whether the kernel's counts of a cgroup are only ours.
#pragma once

#include <filesystem>

namespace ridgeline::node {

// Whether this folder's cgroup holds only this process and those that started it. Call it while nothing that we started
// runs.
bool OnlyWeAreIn(const std::filesystem::path& cgroup);

}  // namespace ridgeline::node
