// Child processes, always from an argument vector, never through a shell.
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
  int exit_code = 0;  // where signal is 0
  int signal = 0;     // the signal that ended it, else 0
  int64_t rss_peak_bytes = 0;
  bool ok() const { return signal == 0 && exit_code == 0; }
};

struct SpawnOptions {
  std::map<std::string, std::string> environment;  // added to, or replacing, ours
  std::filesystem::path stdout_file;               // appended to; empty: inherited
  std::filesystem::path stderr_file;               // appended to; may be stdout_file; empty: inherited
  std::filesystem::path work_dir;                  // empty: ours
  std::vector<int> cpus;                           // pinned to these; empty: as we are
  std::vector<int> inherit_fds;                    // descriptors to keep open across exec
  bool new_session = false;                        // setsid: outlives us and our terminal
  bool new_process_group = false;                  // so that signals to our terminal pass it by
  bool die_with_parent = false;                    // SIGKILL when our thread ends
};

// One started process. The destructor does not wait for it and does not end it.
class Child {
 public:
  // Throws Error(kInfrastructure) where the program cannot be started, with the reason exec gave.
  static Child Spawn(const std::vector<std::string>& argv, const SpawnOptions& options = {});

  pid_t pid() const { return pid_; }
  // Blocks until the process ends.
  ExitStatus Wait();
  // Nothing while it runs.
  std::optional<ExitStatus> Poll();
  // Waits at most `timeout_ns`; nothing where it still runs then. Wakes at once when the process ends.
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

// Runs a program to its end and captures what it printed. `environment` is added to ours, or replaces it. Throws as
// Child::Spawn, and Error(kInfrastructure) where it runs past `timeout_ns` (it is then killed); 0: no limit.
Captured Run(const std::vector<std::string>& argv, int64_t timeout_ns = 0,
             const std::map<std::string, std::string>& environment = {});

// The variables that a child without others would have.
std::map<std::string, std::string> OwnEnvironment();

// The program that is started by this name: where it has no slash, along the folders of `path` ("/usr/bin:/bin"). Empty
// where there is none that may be executed.
std::filesystem::path FindProgram(const std::string& name, const std::string& path);

// "exit code 3", "signal 9 (Killed)".
std::string Describe(const ExitStatus& status);

}  // namespace ridgeline
