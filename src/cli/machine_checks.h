// The checks of `ridgeline doctor` on the machine itself.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace ridgeline::cli {

enum class CheckState { kOk, kWarn, kFail };

struct Check {
  CheckState state = CheckState::kOk;
  std::string name;
  std::string detail;  // the finding
  std::string advice;  // what to do; empty if nothing
};

// Processor, cores, memory and the limits a cgroup puts on them, read under `root`/proc and `root`/sys.
std::vector<Check> MachineChecks(const std::filesystem::path& root);

// Checks the free space on the disk that holds `folder`, and whether the folder is writable.
Check DiskCheck(const std::filesystem::path& folder);

}  // namespace ridgeline::cli
