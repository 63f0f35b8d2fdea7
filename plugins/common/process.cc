#include "common/process.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "common/failure.h"

extern char** environ;

namespace ridgeline::plugin {
namespace {

constexpr const char* kCannotStart = "cannot start a process";

void Check(int error, const std::string& what) {
  if (error != 0) throw Failure(Failure::Kind::kInfrastructure, what + ": " + std::strerror(error));
}

struct SpawnActions {
  posix_spawn_file_actions_t value;
  SpawnActions() { Check(::posix_spawn_file_actions_init(&value), kCannotStart); }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;
  ~SpawnActions() { ::posix_spawn_file_actions_destroy(&value); }

  void Connect(int from, int to) { Check(::posix_spawn_file_actions_adddup2(&value, from, to), kCannotStart); }
  void CloseFrom(int first) { Check(::posix_spawn_file_actions_addclosefrom_np(&value, first), kCannotStart); }
};

struct SpawnAttributes {
  posix_spawnattr_t value;
  explicit SpawnAttributes(bool new_session) {
    Check(::posix_spawnattr_init(&value), kCannotStart);
    sigset_t none;
    sigemptyset(&none);
    sigset_t all;
    sigfillset(&all);
    ::posix_spawnattr_setsigmask(&value, &none);
    ::posix_spawnattr_setsigdefault(&value, &all);
    const int session = new_session ? POSIX_SPAWN_SETSID : 0;
    ::posix_spawnattr_setflags(&value, static_cast<short>(session | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF));
  }
  SpawnAttributes(const SpawnAttributes&) = delete;
  SpawnAttributes& operator=(const SpawnAttributes&) = delete;
  ~SpawnAttributes() { ::posix_spawnattr_destroy(&value); }
};

// Copies the descriptor to a number from `least` on, so that descriptors that are connected first do not replace it.
Fd Above(int fd, int least) {
  Fd copy(::fcntl(fd, F_DUPFD_CLOEXEC, least));
  if (!copy) Check(errno, "cannot copy a descriptor");
  return copy;
}

std::vector<char*> Pointers(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// Returns a file in memory that holds `text`, positioned at its beginning.
Fd TextFile(std::string_view text) {
  Fd file(::memfd_create("input", MFD_CLOEXEC));
  if (!file) Check(errno, "cannot make a file in memory");
  while (!text.empty()) {
    const ssize_t written = ::write(file.get(), text.data(), text.size());
    if (written < 0 && errno != EINTR) Check(errno, "cannot write a file in memory");
    text.remove_prefix(static_cast<size_t>(std::max<ssize_t>(written, 0)));
  }
  ::lseek(file.get(), 0, SEEK_SET);
  return file;
}

// Returns false if the stream has ended.
bool ReadSome(const Fd& from, std::string& to) {
  std::array<char, 65536> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init): read() fills it
  const ssize_t count = ::read(from.get(), buffer.data(), buffer.size());
  if (count > 0) to.append(buffer.data(), static_cast<size_t>(count));
  return count > 0 || (count < 0 && (errno == EINTR || errno == EAGAIN));
}

}  // namespace

Fd& Fd::operator=(Fd&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Fd::~Fd() {
  if (fd_ >= 0) ::close(fd_);
}

int Fd::Release() { return std::exchange(fd_, -1); }

Pipe::Pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) Check(errno, "cannot make a pipe");
  read = Fd(ends[0]);
  write = Fd(ends[1]);
}

std::filesystem::path ProgramBesideUs(const char* name) {
  Dl_info info{};
  ::dladdr(reinterpret_cast<const void*>(&ProgramBesideUs), &info);
  return std::filesystem::path(info.dli_fname).parent_path() / name;
}

void CheckProgram(const std::vector<std::string>& argv) {
  if (argv.empty()) throw Failure(Failure::Kind::kInfrastructure, "cannot run nothing: the job has no command");
  if (::access(argv.front().c_str(), X_OK) == 0) return;
  throw Failure(Failure::Kind::kInfrastructure, "cannot run " + argv.front() + ": " + std::strerror(errno));
}

pid_t Spawn(const std::vector<std::string>& argv, const std::vector<std::string>& environment,
            const SpawnOptions& options) {
  const int count = static_cast<int>(options.descriptors.size());
  SpawnActions actions;
  std::vector<Fd> copies;
  for (int to = 0; to < count; ++to) {
    copies.push_back(Above(options.descriptors[static_cast<size_t>(to)], count));
    actions.Connect(copies.back().get(), to);
  }
  if (options.only_these) actions.CloseFrom(count);
  const SpawnAttributes attributes(options.new_session);
  const std::vector<char*> words = Pointers(argv);
  const std::vector<char*> variables = Pointers(environment);
  pid_t pid = 0;
  Check(::posix_spawnp(&pid, words[0], &actions.value, &attributes.value, words.data(), variables.data()),
        "cannot start " + argv.front());
  return pid;
}

pid_t SpawnForOurLife(const std::vector<std::string>& argv, const std::vector<std::string>& environment, int in,
                      int out, int err) {
  const std::vector<char*> words = Pointers(argv);
  std::vector<char*> variables = Pointers(environment);
  Pipe failure;  // exec closes it, or the child writes why exec failed
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) Check(errno, "cannot start " + argv.front());
  if (pid == 0) {
    // From here on only functions that are safe between fork and exec.
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGUSR1}) ::signal(signal, SIG_DFL);
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);
    if (::dup2(in, STDIN_FILENO) >= 0 && ::dup2(out, STDOUT_FILENO) >= 0 && ::dup2(err, STDERR_FILENO) >= 0) {
      environ = variables.data();
      ::execvp(words.front(), words.data());
    }
    const int why = errno;
    if (::write(failure.write.get(), &why, sizeof why) != sizeof why) ::_exit(126);
    ::_exit(127);
  }
  failure.write = Fd();
  int why = 0;
  ssize_t count = 0;
  do {
    count = ::read(failure.read.get(), &why, sizeof why);
  } while (count < 0 && errno == EINTR);
  if (count != sizeof why) return pid;
  ::waitpid(pid, nullptr, 0);
  throw Failure(Failure::Kind::kInfrastructure, "cannot start " + argv.front() + ": " + std::strerror(why));
}

Finished RunProgram(const std::vector<std::string>& argv, const std::vector<std::string>& environment,
                    std::string_view input, int64_t timeout_ms) {
  Pipe out;
  Pipe err;
  const pid_t pid = SpawnForOurLife(argv, environment, TextFile(input).get(), out.write.get(), err.write.get());
  out.write = Fd();
  err.write = Fd();

  Finished finished;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  while (out.read || err.read) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    if (left <= 0) {
      finished.timed_out = true;
      ::kill(-pid, SIGKILL);  // also kills what it started
      break;
    }
    std::array<pollfd, 2> streams = {{{out.read.get(), POLLIN, 0}, {err.read.get(), POLLIN, 0}}};
    ::poll(streams.data(), streams.size(), static_cast<int>(left));
    if (streams[0].revents != 0 && !ReadSome(out.read, finished.out)) out.read = Fd();
    if (streams[1].revents != 0 && !ReadSome(err.read, finished.err)) err.read = Fd();
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  finished.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return finished;
}

std::vector<std::string> EnvironmentWithout(const std::vector<std::string>& prefixes) {
  std::vector<std::string> kept;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const bool dropped = std::any_of(prefixes.begin(), prefixes.end(),
                                     [&](const std::string& prefix) { return text.starts_with(prefix); });
    if (!dropped) kept.emplace_back(text);
  }
  return kept;
}

}  // namespace ridgeline::plugin
