// Where the kernel counts and limits what the group of processes that this one is in may take: its cgroup.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

namespace ridgeline {

// The folders of our cgroup, the first ours and then each above it, up to the topmost that is seen: in a container,
// the container's. What a folder says may be missing in any of them, the folder too.
struct CgroupFolders {
  std::vector<std::filesystem::path> v2;  // of all controllers
  std::vector<std::filesystem::path> v1;  // of the controller alone
};

// Of a controller: "memory", "cpu". A machine has it in one of both versions. `root` is "/" but in tests.
CgroupFolders CgroupsOf(std::string_view controller, const std::filesystem::path& root = "/");

}  // namespace ridgeline
