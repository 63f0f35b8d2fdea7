#include "base/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <sstream>

#include "base/clock.h"
#include "base/error.h"

extern char** environ;

namespace ridgeline {
namespace {

constexpr char kTooManyProcesses[] =
    "you may have as many processes as you are allowed to: end some, or raise `ulimit -u`";

// Everything that the child needs, prepared before fork: between fork and exec, only async-signal-safe calls are
// allowed.
struct Prepared {
  std::vector<std::string> argv_text;
  std::vector<std::string> env_text;
  std::vector<char*> argv;
  std::vector<char*> env;
};

std::unique_ptr<Prepared> Prepare(const std::vector<std::string>& argv, const SpawnOptions& options) {
  auto p = std::make_unique<Prepared>();
  p->argv_text = argv;
  std::map<std::string, std::string> environment = OwnEnvironment();
  for (const auto& [name, value] : options.environment) environment[name] = value;
  for (const auto& [name, value] : environment) p->env_text.push_back(name + "=" + value);
  for (auto& text : p->argv_text) p->argv.push_back(text.data());
  for (auto& text : p->env_text) p->env.push_back(text.data());
  p->argv.push_back(nullptr);
  p->env.push_back(nullptr);
  return p;
}

bool Redirect(const std::string& file, int to) {
  if (file.empty()) return true;
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  return fd >= 0 && ::dup2(fd, to) >= 0;
}

// Runs in the child. Returns only on failure, with errno set.
void SetUpAndExec(const Prepared& p, const SpawnOptions& options, const std::string& out, const std::string& err,
                  const std::string& dir, const cpu_set_t& cpus, pid_t parent) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  signal(SIGPIPE, SIG_DFL);
  // Restores SIGINT. A shell's background jobs ignore it, so that Ctrl-C does not reach them. Ctrl-C does not reach
  // another group anyway.
  if (options.new_session || options.new_process_group) signal(SIGINT, SIG_DFL);
  if (options.new_session && ::setsid() < 0) return;
  if (options.new_process_group && ::setpgid(0, 0) != 0) return;
  if (options.die_with_parent) {
    if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return;
    if (::getppid() != parent) ::raise(SIGKILL);  // the parent ended before prctl
  }
  if (!options.cpus.empty() && ::sched_setaffinity(0, sizeof cpus, &cpus) != 0) return;
  for (const int fd : options.inherit_fds) {
    if (::fcntl(fd, F_SETFD, 0) != 0) return;
  }
  if (!dir.empty() && ::chdir(dir.c_str()) != 0) return;
  if (!Redirect(out, STDOUT_FILENO) || !Redirect(err, STDERR_FILENO)) return;
  environ = const_cast<char**>(p.env.data());
  ::execvp(p.argv[0], p.argv.data());
}

}  // namespace

Child Child::Spawn(const std::vector<std::string>& argv, const SpawnOptions& options) {
  if (argv.empty()) throw Error(ErrorKind::kInternal, "Child::Spawn: no program");
  const auto prepared = Prepare(argv, options);
  const std::string out = options.stdout_file.string();
  const std::string err = options.stderr_file.string();
  const std::string dir = options.work_dir.string();
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  for (const int cpu : options.cpus) CPU_SET(static_cast<size_t>(cpu), &cpus);

  int report[2];  // a successful exec closes it; a failed one sends errno
  if (::pipe2(report, O_CLOEXEC) != 0) ThrowErrno("cannot make a pipe");
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) {
    ::close(report[0]);
    ::close(report[1]);
    ThrowErrno("cannot start " + argv[0], errno == EAGAIN ? kTooManyProcesses : "");
  }
  if (pid == 0) {
    SetUpAndExec(*prepared, options, out, err, dir, cpus, parent);
    const int code = errno;
    [[maybe_unused]] const ssize_t n = ::write(report[1], &code, sizeof code);
    ::_exit(127);
  }
  ::close(report[1]);
  int code = 0;
  ssize_t n = 0;
  do {
    n = ::read(report[0], &code, sizeof code);
  } while (n < 0 && errno == EINTR);
  ::close(report[0]);
  if (n == static_cast<ssize_t>(sizeof code)) {
    ::waitpid(pid, nullptr, 0);
    errno = code;
    ThrowErrno("cannot start " + argv[0], code == ENOENT   ? "is it installed, and on PATH?"
                                          : code == EAGAIN ? kTooManyProcesses
                                                           : "");
  }
  return Child(pid);
}

std::optional<ExitStatus> Child::Reap(bool block) {
  if (ended_) return ended_;
  int status = 0;
  rusage usage{};
  pid_t got = 0;
  do {
    got = ::wait4(pid_, &status, block ? 0 : WNOHANG, &usage);
  } while (got < 0 && errno == EINTR);
  if (got == 0) return std::nullopt;
  if (got < 0) ThrowErrno("cannot wait for process " + std::to_string(pid_));
  ExitStatus ended;
  if (WIFSIGNALED(status)) {
    ended.signal = WTERMSIG(status);
  } else {
    ended.exit_code = WEXITSTATUS(status);
  }
  ended.rss_peak_bytes = static_cast<int64_t>(usage.ru_maxrss) * 1024;
  ended_ = ended;
  return ended_;
}

ExitStatus Child::Wait() { return *Reap(true); }
std::optional<ExitStatus> Child::Poll() { return Reap(false); }

std::optional<ExitStatus> Child::WaitFor(int64_t timeout_ns) {
  if (auto ended = Reap(false)) return ended;
  const int fd = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
  if (fd < 0) ThrowErrno("cannot watch process " + std::to_string(pid_));
  pollfd watched{fd, POLLIN, 0};
  const timespec timeout{timeout_ns / 1'000'000'000, timeout_ns % 1'000'000'000};
  ::ppoll(&watched, 1, &timeout, nullptr);
  ::close(fd);
  return Reap(false);
}

void Child::Signal(int signal) const {
  if (!ended_) ::kill(pid_, signal);
}

void Child::SignalGroup(int signal) const { ::kill(-pid_, signal); }

Captured Run(const std::vector<std::string>& argv, int64_t timeout_ns,
             const std::map<std::string, std::string>& environment) {
  std::array<std::string, 2> names;
  std::array<int, 2> fds{};
  for (size_t i = 0; i < 2; ++i) {  // memory files instead of pipes, so the child never blocks on us
    fds[i] = static_cast<int>(::syscall(SYS_memfd_create, "captured", MFD_CLOEXEC));
    if (fds[i] < 0) ThrowErrno("cannot make a memory file");
    names[i] = "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(fds[i]);
  }
  const auto close_both = [&] { std::for_each(fds.begin(), fds.end(), ::close); };
  try {
    SpawnOptions options;
    options.environment = environment;
    options.stdout_file = names[0];
    options.stderr_file = names[1];
    options.new_process_group = true;
    options.die_with_parent = true;
    Child child = Child::Spawn(argv, options);
    Captured captured;
    if (timeout_ns > 0) {
      const SystemClock clock;
      const int64_t end_ns = clock.MonotonicNs() + timeout_ns;
      std::optional<ExitStatus> ended;
      while (!ended && clock.MonotonicNs() < end_ns) ended = child.WaitFor(end_ns - clock.MonotonicNs());
      if (!ended) {
        child.SignalGroup(SIGKILL);
        child.Wait();
        throw Error(ErrorKind::kInfrastructure,
                    argv[0] + " did not end within " + std::to_string(timeout_ns / 1'000'000'000) + " s");
      }
      captured.status = *ended;
    } else {
      captured.status = child.Wait();
    }
    const auto read_all = [](int fd) {
      std::string text;
      std::array<char, 1 << 14> buffer;
      ::lseek(fd, 0, SEEK_SET);
      for (ssize_t n = 0; (n = ::read(fd, buffer.data(), buffer.size())) > 0;) {
        text.append(buffer.data(), static_cast<size_t>(n));
      }
      return text;
    };
    captured.stdout_text = read_all(fds[0]);
    captured.stderr_text = read_all(fds[1]);
    close_both();
    return captured;
  } catch (...) {
    close_both();
    throw;
  }
}

std::map<std::string, std::string> OwnEnvironment() {
  std::map<std::string, std::string> environment;
  for (char** e = environ; *e != nullptr; ++e) {
    const std::string_view entry(*e);
    const size_t equals = entry.find('=');
    if (equals == std::string_view::npos) continue;
    // Keeps the first of equal names, like getenv.
    environment.try_emplace(std::string(entry.substr(0, equals)), entry.substr(equals + 1));
  }
  return environment;
}

std::filesystem::path FindProgram(const std::string& name, const std::string& path) {
  const auto is_program = [](const std::filesystem::path& file) {
    std::error_code ec;
    return std::filesystem::is_regular_file(file, ec) && ::access(file.c_str(), X_OK) == 0;
  };
  if (name.find('/') != std::string::npos) return is_program(name) ? name : "";
  std::istringstream folders(path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (std::filesystem::path file = std::filesystem::path(folder) / name; is_program(file)) return file;
  }
  return {};
}

std::string Describe(const ExitStatus& status) {
  if (status.signal == 0) return "exit code " + std::to_string(status.exit_code);
  return "signal " + std::to_string(status.signal) + " (" + ::strsignal(status.signal) + ")";
}

}  // namespace ridgeline
