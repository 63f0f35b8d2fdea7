#include "driver/lock.h"

#include <sys/stat.h>
#include <unistd.h>

#include <charconv>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "driver/patience.h"
#include "driver/places.h"

namespace ridgeline {
namespace {
namespace fs = std::filesystem;

// "pid\nsweep\n"; nothing where the holder has not written it yet.
std::optional<DriverIdentity> ReadIdentity(const fs::path& file) {
  const std::string text = ReadTail(file, 1 << 16);
  const auto first = text.find('\n');
  if (first == std::string::npos || !text.ends_with('\n') || first + 1 >= text.size()) return std::nullopt;
  DriverIdentity identity;
  const auto [end, error] = std::from_chars(text.data(), text.data() + first, identity.pid);
  if (error != std::errc() || end != text.data() + first || identity.pid <= 0) return std::nullopt;
  identity.sweep = text.substr(first + 1, text.size() - first - 2);
  return identity;
}

bool HasOpen(pid_t pid, const fs::path& file) {
  struct stat wanted {};
  if (::lstat(file.c_str(), &wanted) != 0) return false;
  std::error_code ec;
  for (fs::directory_iterator it(fmt::format("/proc/{}/fd", pid), ec), end; !ec && it != end; it.increment(ec)) {
    struct stat open_file {};
    if (::stat(it->path().c_str(), &open_file) == 0 && open_file.st_dev == wanted.st_dev &&
        open_file.st_ino == wanted.st_ino) {
      return true;
    }
  }
  return false;
}

}  // namespace

DriverLock DriverLock::Take(const fs::path& db, const std::string& sweep) {
  const fs::path file = DriverLockFile(db);
  SystemClock clock;
  const int64_t end_ns = clock.MonotonicNs() + kLockPatienceNs;
  auto lock = FileLock::Try(file);
  while (!lock) {
    const auto holder = RunningDriver(db);
    if (holder || clock.MonotonicNs() > end_ns) {
      throw Error(ErrorKind::kInfrastructure,
                  fmt::format("{} is in use by another ridgeline{}", db.string(),
                              holder ? fmt::format(" (process {}, sweep {})", holder->pid, holder->sweep) : ""),
                  "wait for it, stop it with `ridgeline cancel`, or choose another file with --db");
    }
    clock.SleepNs(kLookAtLockAgainNs);
    lock = FileLock::Try(file);
  }
  const std::string text = fmt::format("{}\n{}\n", ::getpid(), sweep);
  if (::ftruncate(lock->fd(), 0) != 0 ||
      ::pwrite(lock->fd(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    ThrowErrno("cannot write " + file.string());
  }
  return DriverLock(std::move(*lock));
}

std::optional<DriverLock> DriverLock::TakeForAMoment(const fs::path& db) {
  std::optional<FileLock> lock = FileLock::Try(DriverLockFile(db));
  return lock ? std::optional(DriverLock(std::move(*lock))) : std::nullopt;
}

std::optional<DriverIdentity> RunningDriver(const fs::path& db) {
  const fs::path file = DriverLockFile(db);
  auto identity = ReadIdentity(file);
  if (!identity || !HasOpen(identity->pid, file)) return std::nullopt;
  return identity;
}

}  // namespace ridgeline
