// `ridgeline nightly accept`: what a night found worse is as it should be.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace ridgeline {

struct AcceptOptions {
  std::string night;
  std::vector<std::string> points;  // as the night's gate names them
  bool all = false;                 // of them
  std::string reason;
  std::string author;  // empty: git's user.name, else the login's
  bool undo = false;   // it is no longer
};

// Writes it into the night's record, in `nights`, of the folder that the person calls `folder`. Throws Error(kUsage)
// where there is nothing of the kind.
int AcceptNight(const AcceptOptions& options, const std::filesystem::path& nights, const std::string& folder);

}  // namespace ridgeline
