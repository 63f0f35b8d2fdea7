// Programs that a launcher starts. Each gets an argument vector and never runs through a shell.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace ridgeline::plugin {

// Owns a file descriptor.
class Fd {
 public:
  explicit Fd(int fd = -1) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.Release()) {}
  Fd& operator=(Fd&& other) noexcept;
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd();

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int Release();

 private:
  int fd_;
};

// A pipe with both ends close-on-exec. Throws Failure.
struct Pipe {
  Fd read;
  Fd write;
  Pipe();
};

// The path of a program in the folder of the launcher's library. The program need not exist.
std::filesystem::path ProgramBesideUs(const char* name);

// Throws Failure if the command is empty, or its first word is no program that we may run.
void CheckProgram(const std::vector<std::string>& argv);

struct SpawnOptions {
  std::vector<int> descriptors;  // these become the program's descriptors 0, 1, 2 and so on
  bool only_these = false;       // close all others, whether they are close-on-exec or not
  bool new_session = false;      // the program leads a new session
};

// Starts a program, found by PATH, with no signal blocked or ignored. Throws Failure if there is no such program.
pid_t Spawn(const std::vector<std::string>& argv, const std::vector<std::string>& environment,
            const SpawnOptions& options);

// The same for a program that is useless without us. It is killed when this thread ends, in whatever way. Signals from
// our terminal do not reach it, because Ctrl-C in the middle of its work would leave open whether that was done.
pid_t SpawnForOurLife(const std::vector<std::string>& argv, const std::vector<std::string>& environment, int in,
                      int out, int err);

struct Finished {
  int exit_code = 0;  // for a signal, 128 + its number
  bool timed_out = false;
  std::string out;
  std::string err;
  bool ok() const { return exit_code == 0 && !timed_out; }
};

// Runs such a program to its end, and kills it if it runs past the timeout. Throws as Spawn does.
Finished RunProgram(const std::vector<std::string>& argv, const std::vector<std::string>& environment,
                    std::string_view input, int64_t timeout_ms);

// Returns this process's environment, without variables whose names begin with one of `prefixes`.
std::vector<std::string> EnvironmentWithout(const std::vector<std::string>& prefixes);

}  // namespace ridgeline::plugin
