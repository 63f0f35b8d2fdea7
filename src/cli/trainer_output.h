// What trainers say, as a part of what `ridgeline exec` says, in which launchers look for its own lines
// (ridgeline/job_line.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/files.h"

namespace ridgeline {

// Text from outside on one line of ours: controls become escapes, and no line of a job can be found in it.
std::string Disarmed(std::string_view text);

// A trainer's log, told as it grows. Each line is marked as the trainer's, and long ones are cut; of what comes faster
// than anybody reads it the newest is told, and how much was left out.
class TrainerOutput {
 public:
  explicit TrainerOutput(const std::filesystem::path& log);
  // What was said since it was last asked, in whole lines; when the trainer has ended, a last one without its end, too.
  std::string Next(bool ended);

 private:
  Fd fd_;
  int64_t offset_ = 0;  // of the first byte that was not told
};

}  // namespace ridgeline
