// The lock that allows one driver for each database.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>

#include "base/files.h"

namespace ridgeline::driver {

struct DriverIdentity {
  pid_t pid = 0;
  std::string sweep;
  std::string host;
  std::string boot;  // boot id of that host; tells two hosts of the same name apart
  std::string user;

  bool is_here() const;      // the process is on this host and belongs to its current boot
  std::string Text() const;  // "process 7 on login1, of ada, sweep demo"
};

// Held while a driver works on a database. The lock file names the driver.
class DriverLock {
 public:
  // Throws Error(kInfrastructure) that names the process that holds it. A network file system may not tell one host
  // about another's lock. So if the file names a process of another host, that process holds the lock until the name is
  // gone.
  static DriverLock Take(const std::filesystem::path& db, const std::string& sweep);
  // Takes the lock for a moment, without a name, for a program that is no driver. A driver that starts meanwhile waits.
  // Returns nothing if the lock is held, or if we may not take it.
  static std::optional<DriverLock> TakeForAMoment(const std::filesystem::path& db);

  DriverLock(DriverLock&&) noexcept = default;
  DriverLock& operator=(DriverLock&&) = delete;
  ~DriverLock();  // removes the file, or, if that is not allowed, the name from it

 private:
  DriverLock(FileLock lock, std::filesystem::path named) : lock_(std::move(lock)), named_(std::move(named)) {}
  FileLock lock_;
  std::filesystem::path named_;  // the file with our name; empty: without a name
};

// Returns the driver that works on a database now, or nothing. Checks against the kernel that the process named in the
// lock file has that file open, so a process that got the same number later is never taken for it. For another user's
// process, it tests the lock itself. A holder on another host counts as running.
std::optional<DriverIdentity> RunningDriver(const std::filesystem::path& db);

}  // namespace ridgeline::driver
