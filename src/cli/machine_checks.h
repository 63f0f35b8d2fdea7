// What `ridgeline doctor` says of the machine itself.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace ridgeline {

enum class CheckState { kOk, kWarn, kFail };

struct Check {
  CheckState state = CheckState::kOk;
  std::string name;
  std::string detail;  // what was found
  std::string advice;  // what to do; empty where there is nothing to do
};

// Processor, cores, memory and the limits a cgroup puts on them, read under `root`/proc and `root`/sys.
std::vector<Check> MachineChecks(const std::filesystem::path& root);

// Room on the disk that holds `folder`, and whether it can be written.
Check DiskCheck(const std::filesystem::path& folder);

}  // namespace ridgeline
