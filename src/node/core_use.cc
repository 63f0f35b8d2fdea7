#include "node/core_use.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/cgroup.h"

namespace ridgeline::node {
namespace {
namespace fs = std::filesystem;

constexpr double kQuietLoad = 0.5;  // processes that want a core, averaged over the last minute
constexpr int64_t kLookNs = 100'000'000;
constexpr int64_t kFewestTicks = 100;  // ticks of all cores. Below this, rounding dominates, unless others took
constexpr int64_t kManyTicks = 10;     // at least so many, which no rounding causes

int64_t OwnNs() {
  int64_t ns = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    if (::getrusage(who, &usage) != 0) continue;
    for (const timeval& time : {usage.ru_utime, usage.ru_stime})
      ns += time.tv_sec * 1'000'000'000 + time.tv_usec * 1000;
  }
  return ns;
}

// Adds a line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal. The guests' time is part of user.
void AddTicks(std::istringstream& line, CoreUse& use) {
  std::array<int64_t, 8> ticks{};
  for (int64_t& value : ticks) line >> value;
  int64_t all = 0;
  for (const int64_t value : ticks) all += value;
  use.ticks += all;
  use.busy_ticks += all - ticks[3] - ticks[4];
}

int64_t OneNumber(const fs::path& file) {
  std::ifstream in(file);
  int64_t value = 0;
  return in >> value ? value : 0;
}

// The throttles of our cgroup, which has the controller only if it has a quota.
int64_t CgroupThrottles(const fs::path& root) {
  const CgroupFolders folders = CgroupsOf("cpu", root);
  for (const std::vector<fs::path>& version : {folders.v2, folders.v1}) {
    if (version.empty()) continue;
    std::ifstream stat(version.front() / "cpu.stat");
    std::string key;
    for (int64_t value = 0; stat >> key >> value;) {
      if (key == "nr_throttled") return value;
    }
  }
  return 0;
}

// The time in ticks.
double OwnTime(const CoreUse& before, const CoreUse& after) {
  return static_cast<double>(after.own_ns - before.own_ns) * 1e-9 * static_cast<double>(::sysconf(_SC_CLK_TCK));
}

// The fraction that others took of the part `share` of the cores' time.
double OthersShare(const CoreUse& before, const CoreUse& after, double share) {
  const auto all = static_cast<double>(after.ticks - before.ticks);
  const double others = static_cast<double>(after.busy_ticks - before.busy_ticks) - OwnTime(before, after);
  return all > 0 ? std::clamp((others - all * (1 - share)) / (all * share), 0.0, 1.0) : 0;
}

}  // namespace

CoreUse ReadCoreUse(std::span<const int> cores, const fs::path& root) {
  CoreUse use;
  std::ifstream stat(root / "proc/stat");
  for (std::string line; std::getline(stat, line) && line.starts_with("cpu");) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    const bool wanted = cores.empty() ? name == "cpu" : std::any_of(cores.begin(), cores.end(), [&](int core) {
      return name == "cpu" + std::to_string(core);
    });
    if (wanted) AddTicks(words, use);
  }
  for (const int core : cores) {
    use.throttles += OneNumber(root / "sys/devices/system/cpu" / ("cpu" + std::to_string(core)) /
                               "thermal_throttle/core_throttle_count");
  }
  use.throttles += CgroupThrottles(root);
  use.own_ns = OwnNs();
  return use;
}

double OthersShareNow(Clock& clock, const fs::path& root) {
  std::ifstream in(root / "proc/loadavg");
  double load = 0;
  if (!(in >> load) || load < kQuietLoad) return 0;
  const CoreUse before = ReadCoreUse({}, root);
  clock.SleepNs(kLookNs);
  return OthersShare(before, ReadCoreUse({}, root), 1);
}

void SetCoreUse(const CoreUse& before, const CoreUse& after, RunResult& result, double share) {
  const int64_t ticks = after.ticks - before.ticks;
  const int64_t busy = after.busy_ticks - before.busy_ticks;
  const double others = OthersShare(before, after, share);
  if (busy <= 0 || (ticks < kFewestTicks && others * static_cast<double>(ticks) * share < kManyTicks)) return;
  const double own = std::min(OwnTime(before, after), static_cast<double>(busy)) / (static_cast<double>(ticks) * share);
  result.cores.busy_share = std::min(1.0, own + others);
  result.cores.others_share = others;
  result.cores.throttles = std::max<int64_t>(0, after.throttles - before.throttles);
}

}  // namespace ridgeline::node
