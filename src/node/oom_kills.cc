#include "node/oom_kills.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <string>
#include <utility>

#include "base/cgroup.h"
#include "node/own_cgroup.h"

namespace ridgeline::node {
namespace {
namespace fs = std::filesystem;

// The number in the line "oom_kill N"; nothing if there is no such line.
std::optional<int64_t> KillsIn(const fs::path& file) {
  std::ifstream in(file);
  std::string key;
  for (int64_t value = 0; in >> key >> value;) {
    if (key == "oom_kill") return value;
  }
  return std::nullopt;
}

}  // namespace

OomWatch::OomWatch(fs::path root) : root_(std::move(root)), before_(Count()) {}

OomKills OomWatch::Since() const {
  const Counted now = Count();
  return {std::max<int64_t>(0, now.kills - before_.kills), before_.ours_alone && now.ours_alone};
}

OomWatch::Counted OomWatch::Count() const {
  const CgroupFolders folders = CgroupsOf("memory", root_);
  // The nearest cgroup that counts kills: in a container, only the topmost may be visible as ours.
  for (const fs::path& folder : folders.v2) {
    if (const auto kills = KillsIn(folder / "memory.events")) return {*kills, OnlyWeAreIn(folder)};
  }
  for (const fs::path& folder : folders.v1) {
    if (const auto kills = KillsIn(folder / "memory.oom_control")) return {*kills, OnlyWeAreIn(folder)};
  }
  return {KillsIn(root_ / "proc/vmstat").value_or(0), false};
}

}  // namespace ridgeline::node
