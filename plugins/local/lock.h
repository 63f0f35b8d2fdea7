// The local launcher's locks.
#pragma once

#include <filesystem>
#include <optional>
#include <utility>

namespace ridgeline::local {

// An exclusive lock of an open file description (F_OFD_SETLK). Processes that inherit the descriptor hold it too. It is
// free when the last of them has ended, in whatever way.
class Lock {
 public:
  // Returns nothing if another process holds it. Throws Failure if the file cannot be opened.
  static std::optional<Lock> Try(const std::filesystem::path& path);
  // Tests the lock without taking it, so that testing disturbs nobody. Returns false if there is no such file.
  static bool Held(const std::filesystem::path& path);

  Lock(Lock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Lock& operator=(Lock&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  ~Lock();

  int fd() const { return fd_; }  // close-on-exec

 private:
  explicit Lock(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace ridgeline::local
