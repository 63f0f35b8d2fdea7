// The launcher's records on disk, as text. One process writes them, and another may read them days later. Each has a
// checksum.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/answers.h"

namespace ridgeline::local {

// The process that runs a job: the keeper, which leads the job's session and process group.
struct Started {
  pid_t pid = 0;
  int64_t start_ticks = 0;  // from /proc/PID/stat; with the pid, it names one process and never a later one
  std::string cores;        // "0,1"
};

std::string FormatStarted(const Started& started);
// Returns nothing if the text is damaged. So do the functions below.
std::optional<Started> ParseStarted(std::string_view text);

// How a job's process ended; the keeper writes "exit_code 3" or "signal 9".
struct Exit {
  int exit_code = 0;  // if signal is 0
  int signal = 0;
  bool ok() const { return signal == 0 && exit_code == 0; }
};

std::optional<Exit> ParseExit(std::string_view text);

// The job as it was submitted.
std::string FormatRequest(const plugin::Json& job);
std::optional<plugin::Json> ParseRequest(const std::string& text);

// Returns field 22 of /proc/PID/stat. The program's name, field 2, may contain blanks and brackets.
std::optional<int64_t> ParseStartTicks(std::string_view stat);

// What is known of a job at one moment.
struct Seen {
  bool submitted = false;  // a request exists
  bool alive = false;      // its lock is held
  bool cancelled = false;  // it was told to end
  std::optional<Started> started;
  std::optional<Exit> exit;
  std::string damaged;   // what is wrong with one of its records; empty: nothing is
  std::string log_tail;  // if it ended badly
};

plugin::JobState StateOf(const Seen& seen);

}  // namespace ridgeline::local
