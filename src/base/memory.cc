#include "base/memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace ridgeline {
namespace {
namespace fs = std::filesystem;

constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();
constexpr int64_t kNoLimitV1 = int64_t{1} << 60;  // cgroup v1 writes "no limit" as a number near 2^63

// The number a file begins with; kUnlimited where there is none ("max", or no such file).
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

// What is left to the cgroup `path` ("/a/b") and to each one above it, of the hierarchy mounted at `mount`.
int64_t LeftInCgroup(const fs::path& mount, fs::path path, const char* limit_file, const char* usage_file) {
  int64_t left = kUnlimited;
  for (;; path = path.parent_path()) {
    const fs::path dir = mount / path.relative_path();
    const int64_t limit = NumberIn(dir / limit_file);
    const int64_t usage = NumberIn(dir / usage_file);
    if (limit < kNoLimitV1 && usage != kUnlimited) {
      left = std::min(left, limit - usage + PageCache(dir / "memory.stat"));
    }
    if (!path.has_relative_path()) return left;
  }
}

}  // namespace

int64_t AvailableMemoryBytes(const fs::path& root) {
  int64_t available = MemAvailable(root);
  const fs::path mount = root / "sys/fs/cgroup";
  std::ifstream in(root / "proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {  // "0::/path" (v2) or "4:memory:/path" (v1)
    if (line.starts_with("0::")) {
      available = std::min(available, LeftInCgroup(mount, line.substr(3), "memory.max", "memory.current"));
    } else if (const size_t at = line.find(":memory:"); at != std::string::npos) {
      available = std::min(available, LeftInCgroup(mount / "memory", line.substr(at + 8), "memory.limit_in_bytes",
                                                   "memory.usage_in_bytes"));
    }
  }
  return std::max<int64_t>(available, 0);
}

}  // namespace ridgeline
