// The processor time that this process may take.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace ridgeline {

struct AllowedCores {
  std::vector<int> ids;  // those it may run on, by its affinity, which is within its cpusets; empty where nobody says
  double quota = 0;      // cores' worth of time that it may take, by its cgroup and each above that; 0: no quota
  bool subset = false;   // of the machine's: there are others

  // How many threads can run at once without being held back: at least 1; 0 where nobody says.
  int64_t count() const;
};

// `root` is "/" but in tests, which say of this process's own affinity what they find.
AllowedCores CoresAllowed(const std::filesystem::path& root = "/");

}  // namespace ridgeline
