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
  std::string host;  // empty in files of earlier versions, as are the others
  std::string boot;  // of that host: of two that are called alike, which one it is
  std::string user;

  bool is_here() const;      // a process of this host, as long as that has been up
  std::string Text() const;  // "process 7 on login1, of ada, sweep demo"
};

// Held while a driver works on a database; names it in the lock file.
class DriverLock {
 public:
  // Throws Error(kInfrastructure) naming the process that holds it. A network file system may not tell one host of
  // another's lock: who is named there by another host holds it, until the name is gone.
  static DriverLock Take(const std::filesystem::path& db, const std::string& sweep);
  // For a moment, by who is no driver and is not named: a driver that starts meanwhile waits for it. Nothing where
  // somebody holds it, or where we may not.
  static std::optional<DriverLock> TakeForAMoment(const std::filesystem::path& db);

  DriverLock(DriverLock&&) noexcept = default;
  DriverLock& operator=(DriverLock&&) = delete;
  ~DriverLock();  // takes the name out of the file

 private:
  DriverLock(FileLock lock, bool is_named) : lock_(std::move(lock)), is_named_(is_named) {}
  FileLock lock_;
  bool is_named_;
};

// The driver at work on a database now; nothing where there is none. Checked against the kernel: the process named in
// the lock file has that file open, so a number that another program has by now is never taken for it. Of another
// user, or of another host, the lock itself is asked.
std::optional<DriverIdentity> RunningDriver(const std::filesystem::path& db);

}  // namespace ridgeline
