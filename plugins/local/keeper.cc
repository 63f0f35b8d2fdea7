// ridgeline-local-keeper EXIT_FILE CORES PROGRAM ARGUMENT…
//
// Stays with one local job from start to end, so the job needs no driver. Starts the program on the given cores
// ("0,1"), waits for it, and ends every process that it left behind. Then writes how it ended into EXIT_FILE
// ("exit_code 3" or "signal 9", and its checksum). Descriptors 3 and 4 are the job's and the slot's locks. The program
// inherits them, so they are held until both have ended. Starts nothing before a byte arrives on standard input:
// without one, the process that started the keeper is gone.
#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "ridgeline/checksum.h"
#include "ridgeline/job_dir.h"
#include "ridgeline/standard_streams.h"

namespace {

// Signals to the job's group are for the program. The keeper survives them, to report how the program ended.
constexpr int kSignals[] = {SIGTERM, SIGUSR1, SIGINT, SIGHUP};

bool Released() {
  char byte = 0;
  ssize_t n = 0;
  do {
    n = ::read(STDIN_FILENO, &byte, 1);
  } while (n < 0 && errno == EINTR);
  const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null >= 0) ::dup2(null, STDIN_FILENO);
  return n == 1;
}

// Also tells the program that no other job has these cores.
void PinTo(const char* cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const char* at = cores; *at != '\0';) {
    char* end = nullptr;
    CPU_SET(static_cast<size_t>(std::strtol(at, &end, 10)), &set);
    if (end == at) break;
    at = *end == ',' ? end + 1 : end;
  }
  if (::sched_setaffinity(0, sizeof set, &set) != 0) {
    std::perror("ridgeline-local-keeper: cannot pin the job");
  } else {
    ::setenv(ridgeline::kOwnCoresVariable, cores, 1);
  }
}

std::vector<pid_t> Children() {
  std::vector<pid_t> children;
  const std::string name = "/proc/self/task/" + std::to_string(::getpid()) + "/children";
  if (std::FILE* file = std::fopen(name.c_str(), "re")) {
    for (int pid = 0; std::fscanf(file, "%d", &pid) == 1;) children.push_back(pid);
    std::fclose(file);
  }
  return children;
}

int WaitFor(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

// Orphans of the job become our children, and so do their children.
void EndAllChildren() {
  for (std::vector<pid_t> children = Children(); !children.empty(); children = Children()) {
    for (const pid_t pid : children) ::kill(pid, SIGKILL);
    for (const pid_t pid : children) WaitFor(pid);
  }
}

bool WriteExit(const std::string& file, int status) {
  const std::string text =
      ridgeline::SealedLine(WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status))
                                                : "exit_code " + std::to_string(WEXITSTATUS(status)));
  const std::string temporary = file + ".tmp";
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) return false;
  const bool written = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  return ::close(fd) == 0 && written && ::rename(temporary.c_str(), file.c_str()) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  ridgeline::OpenStandardStreams();
  if (argc < 4) {
    std::fputs("usage: ridgeline-local-keeper EXIT_FILE CORES PROGRAM ARGUMENT...\n", stderr);
    return 2;
  }
  if (!Released()) return 0;
  PinTo(argv[2]);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : kSignals) sigaddset(&signals, signal);
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::sigprocmask(SIG_UNBLOCK, &signals, nullptr);
    ::execv(argv[3], argv + 3);
    std::fprintf(stderr, "cannot run %s: %s\n", argv[3], std::strerror(errno));
    ::_exit(127);
  }
  if (pid < 0) {
    // The end is written all the same, so that those who wait for the job hear of it.
    std::perror("ridgeline-local-keeper: cannot start the job");
    constexpr int kCannotStart = 3;
    WriteExit(argv[1], W_EXITCODE(kCannotStart, 0));
    return kCannotStart;
  }
  sigset_t pending;
  // Passes on signals that came before the program could take them.
  if (::sigpending(&pending) == 0) {
    for (const int signal : kSignals) {
      if (sigismember(&pending, signal) == 1) ::kill(pid, signal);
    }
  }
  const int status = WaitFor(pid);
  EndAllChildren();
  if (!WriteExit(argv[1], status)) {
    std::perror("ridgeline-local-keeper: cannot write how the job ended");
    return 3;
  }
  return 0;
}
