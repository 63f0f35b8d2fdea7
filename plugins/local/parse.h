// The launcher's records on disk, as text: written by one process, read by another that may be of a later day. Each
// carries a checksum; those of earlier versions have none.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/answers.h"

namespace ridgeline::local {

// Who runs a job: the keeper, leader of the job's session and process group.
struct Started {
  pid_t pid = 0;
  int64_t start_ticks = 0;  // /proc/PID/stat: with the pid, names one process and never a later one
  std::string cores;        // "0,1"
};

std::string FormatStarted(const Started& started);
// Nothing where it is damaged, as of the others.
std::optional<Started> ParseStarted(std::string_view text);

// How a job's process ended; the keeper writes "exit_code 3" or "signal 9".
struct Exit {
  int exit_code = 0;  // where signal is 0
  int signal = 0;
  bool ok() const { return signal == 0 && exit_code == 0; }
};

std::optional<Exit> ParseExit(std::string_view text);

// The job as it was submitted.
std::string FormatRequest(const plugin::Json& job);
std::optional<plugin::Json> ParseRequest(const std::string& text);

// Field 22 of /proc/PID/stat. The program's name, field 2, may hold blanks and brackets.
std::optional<int64_t> ParseStartTicks(std::string_view stat);

// What is known of a job when one looks.
struct Seen {
  bool submitted = false;  // there is a request
  bool alive = false;      // its lock is held
  bool cancelled = false;  // it was told to end
  std::optional<Started> started;
  std::optional<Exit> exit;
  std::string damaged;   // what is wrong with one of its records; empty: nothing
  std::string log_tail;  // where it ended badly
};

plugin::JobState StateOf(const Seen& seen);

}  // namespace ridgeline::local
