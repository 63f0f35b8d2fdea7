// Programs that a launcher starts, always from an argument vector, never through a shell.
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

// Both ends close-on-exec. Throws Failure.
struct Pipe {
  Fd read;
  Fd write;
  Pipe();
};

// A program that is installed beside the launcher's library, whether it is there or not.
std::filesystem::path ProgramBesideUs(const char* name);

// Throws Failure where the command has no first word, or none that names a program we may run.
void CheckProgram(const std::vector<std::string>& argv);

struct SpawnOptions {
  std::vector<int> descriptors;  // what the program finds as 0, 1, 2 and so on
  bool only_these = false;       // and no others, whether they are close-on-exec or not
  bool new_session = false;      // of which it is the leader
};

// Starts a program, found by PATH, with no signal blocked or ignored. Throws Failure where there is no such program.
pid_t Spawn(const std::vector<std::string>& argv, const std::vector<std::string>& environment,
            const SpawnOptions& options);

// The same, of a program that is of no use without us: it is killed when this thread ends, however that ends. What a
// terminal sends to us does not reach it: Ctrl-C in the middle of what it does would leave open whether it was done.
pid_t SpawnForOurLife(const std::vector<std::string>& argv, const std::vector<std::string>& environment, int in,
                      int out, int err);

struct Finished {
  int exit_code = 0;  // 128 + the signal that ended it
  bool timed_out = false;
  std::string out;
  std::string err;
  bool ok() const { return exit_code == 0 && !timed_out; }
};

// Runs a program of that kind to its end. One that runs past the timeout is killed. Throws as Spawn.
Finished RunProgram(const std::vector<std::string>& argv, const std::vector<std::string>& environment,
                    std::string_view input, int64_t timeout_ms);

// This process's environment, without the variables whose names begin with one of `prefixes`.
std::vector<std::string> EnvironmentWithout(const std::vector<std::string>& prefixes);

}  // namespace ridgeline::plugin
