#include "base/cores.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string>

#include "base/cgroup.h"

namespace ridgeline {
namespace {
namespace fs = std::filesystem;

// "50000 100000", or "max 100000": microseconds of each period. 0: no quota.
double QuotaV2(const fs::path& folder) {
  std::ifstream in(folder / "cpu.max");
  std::string quota;
  double period_us = 0;
  if (!(in >> quota >> period_us) || period_us <= 0) return 0;
  int64_t quota_us = 0;
  const auto [end, error] = std::from_chars(quota.data(), quota.data() + quota.size(), quota_us);
  return error == std::errc() ? static_cast<double>(quota_us) / period_us : 0;
}

// -1: no quota.
double QuotaV1(const fs::path& folder) {
  double quota_us = 0;
  double period_us = 0;
  std::ifstream(folder / "cpu.cfs_quota_us") >> quota_us;
  std::ifstream(folder / "cpu.cfs_period_us") >> period_us;
  return quota_us > 0 && period_us > 0 ? quota_us / period_us : 0;
}

double Quota(const fs::path& root) {
  double least = 0;
  const auto take = [&](double quota) {
    if (quota > 0 && (least == 0 || quota < least)) least = quota;
  };
  const CgroupFolders folders = CgroupsOf("cpu", root);
  for (const fs::path& folder : folders.v2) take(QuotaV2(folder));
  for (const fs::path& folder : folders.v1) take(QuotaV1(folder));
  return least;
}

// The number of cores in "0-3,8,10-11"; 0 if it cannot be read.
int64_t CountOf(const fs::path& list) {
  std::ifstream in(list);
  int64_t count = 0;
  int64_t first = 0;
  while (in >> first) {
    int64_t last = first;
    if (in.peek() == '-') {
      in.ignore();
      in >> last;
    }
    count += last - first + 1;
    if (in.peek() != ',') break;
    in.ignore();
  }
  return count;
}

std::vector<int> Affinity() {
  std::vector<int> ids;
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return ids;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<size_t>(cpu), &allowed)) ids.push_back(cpu);
  }
  return ids;
}

}  // namespace

int64_t AllowedCores::count() const {
  const auto cores = static_cast<int64_t>(ids.size());
  return quota > 0 ? std::min(cores, std::max<int64_t>(1, static_cast<int64_t>(quota))) : cores;
}

AllowedCores CoresAllowed(const fs::path& root) {
  AllowedCores cores;
  cores.ids = Affinity();
  cores.quota = Quota(root);
  cores.subset = static_cast<int64_t>(cores.ids.size()) < CountOf(root / "sys/devices/system/cpu/online");
  return cores;
}

}  // namespace ridgeline
