// One driver a database.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>

#include "base/files.h"

namespace ridgeline {

struct DriverIdentity {
  pid_t pid = 0;
  std::string sweep;
};

// Held while a driver works on a database; names it in the lock file.
class DriverLock {
 public:
  // Throws Error(kInfrastructure) naming the process that holds it.
  static DriverLock Take(const std::filesystem::path& db, const std::string& sweep);
  // For a moment, by who is no driver and is not named: a driver that starts meanwhile waits for it. Nothing where
  // somebody holds it.
  static std::optional<DriverLock> TakeForAMoment(const std::filesystem::path& db);

 private:
  explicit DriverLock(FileLock lock) : lock_(std::move(lock)) {}
  FileLock lock_;
};

// The driver at work on a database now; nothing where there is none. Checked against the kernel: the process named in
// the lock file has that file open, so a number that another program has by now is never taken for it.
std::optional<DriverIdentity> RunningDriver(const std::filesystem::path& db);

}  // namespace ridgeline
