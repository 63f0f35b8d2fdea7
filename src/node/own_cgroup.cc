#include "node/own_cgroup.h"

#include <sys/types.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <string>

namespace ridgeline::node {
namespace {
namespace fs = std::filesystem;

pid_t ParentOf(pid_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  std::string stat;
  std::getline(in, stat);
  // The format is "PID (NAME) STATE PARENT …", and a name may contain anything.
  const size_t name_end = stat.rfind(')');
  return name_end == std::string::npos || stat.size() < name_end + 4 ? 0 : std::atoi(stat.c_str() + name_end + 4);
}

}  // namespace

bool OnlyWeAreIn(const fs::path& cgroup) {
  std::set<pid_t> ours;
  for (pid_t pid = ::getpid(); pid > 0 && ours.insert(pid).second; pid = ParentOf(pid)) {
  }
  std::ifstream in(cgroup / "cgroup.procs");
  bool any = false;
  for (pid_t pid = 0; in >> pid; any = true) {
    if (!ours.contains(pid)) return false;
  }
  return any;
}

}  // namespace ridgeline::node
