// Prints the trainers' output as a part of the output of `ridgeline exec`, in which launchers search for its own lines
// (ridgeline/job_line.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/files.h"

namespace ridgeline::cli {

// Text from outside on one line of ours. Controls become escapes, and no launcher can find a job's line in it.
std::string Disarmed(std::string_view text);

// Prints a trainer's log while it grows. Marks each line as the trainer's and cuts long ones. If output comes too fast
// to read, prints the newest and how much it left out.
class TrainerOutput {
 public:
  explicit TrainerOutput(const std::filesystem::path& log);
  // The output since the last call, in whole lines. When the trainer has ended, includes an unfinished last line.
  std::string Next(bool ended);

 private:
  Fd fd_;
  int64_t offset_ = 0;  // the offset of the first byte that was not printed
};

}  // namespace ridgeline::cli
