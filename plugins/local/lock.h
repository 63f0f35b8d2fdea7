// Locks of the local launcher.
#pragma once

#include <filesystem>
#include <optional>
#include <utility>

namespace ridgeline::local {

// An exclusive lock that belongs to an open file description (F_OFD_SETLK): processes that inherit the descriptor hold
// it too, and it is free when the last of them has ended, however it ended.
class Lock {
 public:
  // Nothing where somebody holds it. Throws Failure where the file cannot be opened.
  static std::optional<Lock> Try(const std::filesystem::path& path);
  // Looks without taking, so that looking disturbs nobody. False where there is no such file.
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
