// Starts child processes, always from an argument vector and never through a shell.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ridgeline {

struct ExitStatus {
  int exit_code = 0;  // valid if signal is 0
  int signal = 0;     // the signal that ended it, else 0
  int64_t rss_peak_bytes = 0;
  bool ok() const { return signal == 0 && exit_code == 0; }
};

struct SpawnOptions {
  std::map<std::string, std::string> environment;  // added to, or replacing, ours
  std::filesystem::path stdout_file;               // appended to; empty: inherited
  std::filesystem::path stderr_file;               // appended to; may be stdout_file; empty: inherited
  std::filesystem::path work_dir;                  // empty: ours
  std::vector<int> cpus;                           // cores to pin it to; empty: unchanged
  std::vector<int> inherit_fds;                    // descriptors to keep open across exec
  bool new_session = false;                        // setsid: outlives us and our terminal
  bool new_process_group = false;                  // so that signals to our terminal do not reach it
  bool die_with_parent = false;                    // SIGKILL when our thread ends
};

// A started process. The destructor neither waits for it nor ends it.
class Child {
 public:
  // Throws Error(kInfrastructure), with exec's reason, if the program cannot be started.
  static Child Spawn(const std::vector<std::string>& argv, const SpawnOptions& options = {});

  pid_t pid() const { return pid_; }
  // Blocks until the process ends.
  ExitStatus Wait();
  // Returns nothing while it runs.
  std::optional<ExitStatus> Poll();
  // Waits at most `timeout_ns`; returns nothing if it still runs then. Wakes at once when the process ends.
  std::optional<ExitStatus> WaitFor(int64_t timeout_ns);
  void Signal(int signal) const;       // the process
  void SignalGroup(int signal) const;  // its process group (new_session or new_process_group)

 private:
  explicit Child(pid_t pid) : pid_(pid) {}
  std::optional<ExitStatus> Reap(bool block);
  pid_t pid_;
  std::optional<ExitStatus> ended_;
};

struct Captured {
  ExitStatus status;
  std::string stdout_text;
  std::string stderr_text;
};

// Runs a program to its end and captures its output. `environment` is added to ours, or replaces it. Throws as
// Child::Spawn, and Error(kInfrastructure) if it runs longer than `timeout_ns` (then it is killed); 0: no limit.
Captured Run(const std::vector<std::string>& argv, int64_t timeout_ns = 0,
             const std::map<std::string, std::string>& environment = {});

// The variables that a child gets by default.
std::map<std::string, std::string> OwnEnvironment();

// Finds the program for this name: if it has no slash, in the folders of `path` ("/usr/bin:/bin"). Empty if there is no
// executable one.
std::filesystem::path FindProgram(const std::string& name, const std::string& path);

// "exit code 3", "signal 9 (Killed)".
std::string Describe(const ExitStatus& status);

}  // namespace ridgeline
