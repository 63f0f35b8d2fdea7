#include "base/machine_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

#include "base/cgroup.h"

namespace ridgeline {
namespace {
namespace fs = std::filesystem;

constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();
constexpr int64_t kNoLimitV1 = int64_t{1} << 60;  // cgroup v1 writes "no limit" as a number near 2^63

// The number at the beginning of a file; kUnlimited if there is none ("max", or no such file).
int64_t NumberIn(const fs::path& file) {
  std::ifstream in(file);
  int64_t value = 0;
  return in >> value ? value : kUnlimited;
}

int64_t MemAvailable(const fs::path& root) {
  std::ifstream in(root / "proc/meminfo");
  for (std::string key; in >> key;) {
    int64_t kibibytes = 0;
    if (key == "MemAvailable:" && in >> kibibytes) return kibibytes * 1024;
    in.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return kUnlimited;
}

int64_t PageCache(const fs::path& stat_file) {
  std::ifstream in(stat_file);
  int64_t cache = 0;
  int64_t value = 0;
  for (std::string key; in >> key >> value;) {
    if (key == "inactive_file" || key == "active_file") cache += value;
  }
  return cache;
}

// The memory that is left to a cgroup; kUnlimited if nothing limits it.
int64_t LeftIn(const fs::path& folder, const char* limit_file, const char* usage_file) {
  const int64_t limit = NumberIn(folder / limit_file);
  const int64_t usage = NumberIn(folder / usage_file);
  if (limit >= kNoLimitV1 || usage == kUnlimited) return kUnlimited;
  return limit - usage + PageCache(folder / "memory.stat");
}

}  // namespace

int64_t AvailableMemoryBytes(const fs::path& root) {
  int64_t available = MemAvailable(root);
  const CgroupFolders folders = CgroupsOf("memory", root);
  for (const fs::path& folder : folders.v2) {
    available = std::min(available, LeftIn(folder, "memory.max", "memory.current"));
  }
  for (const fs::path& folder : folders.v1) {
    available = std::min(available, LeftIn(folder, "memory.limit_in_bytes", "memory.usage_in_bytes"));
  }
  return std::max<int64_t>(available, 0);
}

}  // namespace ridgeline
