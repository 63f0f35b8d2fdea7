// The processor time that this process may use.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace ridgeline {

struct AllowedCores {
  std::vector<int> ids;  // cores that it may run on, by its affinity, which is within its cpusets; empty: unknown
  double quota = 0;      // cores' worth of time that it may use, by its cgroup and each above it; 0: no quota
  bool subset = false;   // a part of the machine's cores: there are others

  // How many threads can run at once without being throttled: at least 1; 0 if unknown.
  int64_t count() const;
};

// `root` is "/" except in tests. They also see this process's real affinity.
AllowedCores CoresAllowed(const std::filesystem::path& root = "/");

}  // namespace ridgeline
