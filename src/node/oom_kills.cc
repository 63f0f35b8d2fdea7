#include "node/oom_kills.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/cgroup.h"

namespace ridgeline {
namespace {
namespace fs = std::filesystem;

// The number of the line "oom_kill N"; nothing where there is none.
std::optional<int64_t> KillsIn(const fs::path& file) {
  std::ifstream in(file);
  std::string key;
  for (int64_t value = 0; in >> key >> value;) {
    if (key == "oom_kill") return value;
  }
  return std::nullopt;
}

pid_t ParentOf(pid_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  std::string stat;
  std::getline(in, stat);
  // "PID (NAME) STATE PARENT …", and a name may hold anything.
  const size_t name_end = stat.rfind(')');
  return name_end == std::string::npos || stat.size() < name_end + 4 ? 0 : std::atoi(stat.c_str() + name_end + 4);
}

// Whether nobody is in the cgroup but this process and those that started it.
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

}  // namespace

OomWatch::OomWatch(fs::path root) : root_(std::move(root)), before_(Count()) {}

OomKills OomWatch::Since() const {
  const Counted now = Count();
  return {std::max<int64_t>(0, now.kills - before_.kills), before_.ours_alone && now.ours_alone};
}

OomWatch::Counted OomWatch::Count() const {
  const CgroupFolders folders = CgroupsOf("memory", root_);
  // The nearest that counts: in a container, ours may be seen as the topmost only.
  for (const fs::path& folder : folders.v2) {
    if (const auto kills = KillsIn(folder / "memory.events")) return {*kills, OnlyWeAreIn(folder)};
  }
  for (const fs::path& folder : folders.v1) {
    if (const auto kills = KillsIn(folder / "memory.oom_control")) return {*kills, OnlyWeAreIn(folder)};
  }
  return {KillsIn(root_ / "proc/vmstat").value_or(0), false};
}

}  // namespace ridgeline
