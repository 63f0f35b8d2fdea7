// `ridgeline nightly accept`: accepts findings of a night as intended.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace ridgeline::nightly {

struct AcceptOptions {
  std::string night;
  std::vector<std::string> points;  // named as by the night's gate
  bool all = false;                 // accepts all points
  std::string reason;
  std::string author;  // if empty, git's user.name, else the login name
  bool undo = false;   // withdraws an acceptance
};

// Records the acceptance in the night's record, in `nights`. `folder` is the name of the folder for messages. Throws
// Error(kUsage) if there is no such night or point.
int AcceptNight(const AcceptOptions& options, const std::filesystem::path& nights, const std::string& folder);

}  // namespace ridgeline::nightly
