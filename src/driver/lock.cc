#include "driver/lock.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <sstream>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/file_system.h"
#include "base/machine.h"
#include "base/text.h"
#include "driver/patience.h"
#include "driver/places.h"

namespace ridgeline::driver {
namespace {
namespace fs = std::filesystem;

// Reads "pid\nsweep\nhost\nboot\nuser\n". Returns nothing if the holder has not written it yet.
std::optional<DriverIdentity> ReadIdentity(const fs::path& file) {
  const std::string text = ReadTail(file, 1 << 16);
  if (!text.ends_with('\n')) return std::nullopt;
  std::vector<std::string> lines;
  std::istringstream each(text);
  for (std::string line; std::getline(each, line);) lines.push_back(line);
  if (lines.size() != 5) return std::nullopt;
  DriverIdentity identity{0, lines[1], lines[2], lines[3], lines[4]};
  const char* end = lines[0].data() + lines[0].size();
  const auto [at, error] = std::from_chars(lines[0].data(), end, identity.pid);
  if (error != std::errc() || at != end || identity.pid <= 0) return std::nullopt;
  return identity;
}

std::string BootId() {
  const auto text = ReadFileIfThere("/proc/sys/kernel/random/boot_id", 64);
  return text ? text->substr(0, text->find('\n')) : "";
}

// Returns "ada", or "user 1000" if the number has no name.
std::string UserName(uid_t uid) {
  std::array<char, 16384> room{};
  passwd entry{};
  passwd* found = nullptr;
  const bool known = ::getpwuid_r(uid, &entry, room.data(), room.size(), &found) == 0 && found != nullptr;
  return known ? found->pw_name : fmt::format("user {}", uid);
}

// Returns nothing if that cannot be known: the process belongs to another user, or too many files are open.
std::optional<bool> HasOpen(pid_t pid, const fs::path& file) {
  struct stat wanted {};
  if (::lstat(file.c_str(), &wanted) != 0) return false;
  std::error_code ec;
  fs::directory_iterator it(fmt::format("/proc/{}/fd", pid), ec);
  for (const fs::directory_iterator end; !ec && it != end; it.increment(ec)) {
    struct stat open_file {};
    if (::stat(it->path().c_str(), &open_file) == 0 && open_file.st_dev == wanted.st_dev &&
        open_file.st_ino == wanted.st_ino) {
      return true;
    }
  }
  const bool is_gone = ec == std::errc::no_such_file_or_directory || ec == std::errc::no_such_process;
  return ec && !is_gone ? std::nullopt : std::optional(false);
}

// Returns whether the lock is held now. Works without the right to write to it.
bool IsHeld(const fs::path& file) {
  const Fd fd(::open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  return fd.get() >= 0 && ::flock(fd.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

bool MayWrite(const fs::path& file) {
  const bool is_there = ::access(file.c_str(), F_OK) == 0;
  return ::access(is_there ? file.c_str() : fs::absolute(file).parent_path().c_str(), W_OK) == 0;
}

// Returns whether the holder is on another host that may also have mounted the file's file system.
bool IsOfAnotherHost(const DriverIdentity& identity, const fs::path& file) {
  return !identity.is_here() && identity.host != HostName() && !NetworkFileSystemOf(file).empty();
}

Error InUse(const fs::path& db, const std::optional<DriverIdentity>& holder) {
  const bool is_elsewhere = holder && !holder->is_here();
  return {ErrorKind::kInfrastructure,
          fmt::format("{} is in use by another ridgeline{}", db.string(),
                      holder ? fmt::format(" ({})", PrintableLine(holder->Text())) : ""),
          is_elsewhere
              ? fmt::format("one host writes to a database: work on {0}, or choose another file with --db. Where no "
                            "ridgeline runs on {0} any more, remove {1}",
                            PrintableLine(holder->host), DriverLockFile(db).string())
              : "wait for it, stop it with `ridgeline cancel`, or choose another file with --db"};
}

}  // namespace

bool DriverIdentity::is_here() const { return boot == BootId(); }

std::string DriverIdentity::Text() const {
  return fmt::format("process {} on {}, of {}, sweep {}", pid, host, user, sweep);
}

DriverLock DriverLock::Take(const fs::path& db, const std::string& sweep) {
  const fs::path file = DriverLockFile(db);
  struct stat info {};
  if (!MayWrite(file) && ::stat(file.c_str(), &info) == 0) {
    throw Error(ErrorKind::kInfrastructure,
                fmt::format("the lock {} is {}'s, and you may not write to it", file.string(), UserName(info.st_uid)),
                "a team's folder has a group of its own and the setgid bit (chmod g+s), and its members the umask 002: "
                "docs/store.md");
  }
  SystemClock clock;
  const int64_t end_ns = clock.MonotonicNs() + kLockPatienceNs;
  auto lock = FileLock::Try(file);
  while (!lock) {
    const auto holder = RunningDriver(db);
    if (holder || clock.MonotonicNs() > end_ns) throw InUse(db, holder);
    clock.SleepNs(kLookAtLockAgainNs);
    lock = FileLock::Try(file);
  }
  if (const auto named = ReadIdentity(file); named && IsOfAnotherHost(*named, file)) throw InUse(db, named);
  DriverLock taken(std::move(*lock), fs::absolute(file));
  const std::string text =
      fmt::format("{}\n{}\n{}\n{}\n{}\n", ::getpid(), sweep, HostName(), BootId(), UserName(::geteuid()));
  if (::ftruncate(taken.lock_.fd(), 0) != 0 ||
      ::pwrite(taken.lock_.fd(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    ThrowErrno("cannot write " + file.string());
  }
  return taken;
}

std::optional<DriverLock> DriverLock::TakeForAMoment(const fs::path& db) {
  const fs::path file = DriverLockFile(db);
  if (!MayWrite(file)) return std::nullopt;
  std::optional<FileLock> lock = FileLock::Try(file);
  if (!lock) return std::nullopt;
  return DriverLock(std::move(*lock), {});
}

DriverLock::~DriverLock() {
  if (named_.empty() || lock_.fd() < 0) return;
  [[maybe_unused]] const int emptied = ::ftruncate(lock_.fd(), 0);
  std::error_code ec;
  fs::remove(named_, ec);
}

std::optional<DriverIdentity> RunningDriver(const fs::path& db) {
  const fs::path file = DriverLockFile(db);
  auto identity = ReadIdentity(file);
  if (!identity) return std::nullopt;
  if (IsOfAnotherHost(*identity, file)) return identity;
  if (!identity->is_here() || !HasOpen(identity->pid, file).value_or(IsHeld(file))) return std::nullopt;
  return identity;
}

}  // namespace ridgeline::driver
