#include "base/cgroup.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

namespace ridgeline {
namespace {
namespace fs = std::filesystem;

// The folder of the cgroup `path` ("/a/b") in the hierarchy mounted at `mount`, and those above it. If a container sees
// the host's path, only the topmost folder exists, which is its own.
std::vector<fs::path> Upwards(const fs::path& mount, fs::path path) {
  std::vector<fs::path> folders;
  for (;; path = path.parent_path()) {
    folders.push_back(path.has_relative_path() ? mount / path.relative_path() : mount);
    if (!path.has_relative_path()) return folders;
  }
}

bool Names(std::string_view controllers, std::string_view wanted) {
  std::istringstream names{std::string(controllers)};
  for (std::string name; std::getline(names, name, ',');) {
    if (name == wanted) return true;
  }
  return false;
}

}  // namespace

CgroupFolders CgroupsOf(std::string_view controller, const fs::path& root) {
  const fs::path mount = root / "sys/fs/cgroup";
  CgroupFolders folders;
  std::ifstream in(root / "proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {  // "0::/path" (v2) or "4:cpu,cpuacct:/path" (v1)
    const size_t first = std::min(line.find(':'), line.size());
    const size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string_view controllers = std::string_view(line).substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty()) {
      folders.v2 = Upwards(mount, path);
    } else if (Names(controllers, controller)) {
      folders.v1 = Upwards(mount / controller, path);
    }
  }
  return folders;
}

}  // namespace ridgeline
