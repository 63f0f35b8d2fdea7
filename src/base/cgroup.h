// Our cgroup: the group of processes for which the kernel counts and limits resources.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

namespace ridgeline {

// The folders of our cgroup: first ours, then each above it, up to the topmost visible one, which in a container is the
// container's. Any of them may lack a file, or may not exist.
struct CgroupFolders {
  std::vector<std::filesystem::path> v2;  // the folders of all controllers
  std::vector<std::filesystem::path> v1;  // the folders of this controller only
};

// For a controller: "memory", "cpu". A machine has it in only one of both versions. `root` is "/" except in tests.
CgroupFolders CgroupsOf(std::string_view controller, const std::filesystem::path& root = "/");

}  // namespace ridgeline
