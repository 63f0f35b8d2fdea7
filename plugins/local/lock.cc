#include "local/lock.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "common/failure.h"

namespace ridgeline::local {
namespace fs = std::filesystem;
namespace {

using plugin::Failure;

[[noreturn]] void Fail(const std::string& what) {
  throw Failure(Failure::Kind::kInfrastructure, what + ": " + std::strerror(errno));
}

struct flock WholeFile() {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

}  // namespace

std::optional<Lock> Lock::Try(const fs::path& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) Fail("cannot open the lock " + path.string());
  Lock lock(fd);
  struct flock whole = WholeFile();
  if (::fcntl(fd, F_OFD_SETLK, &whole) == 0) return lock;
  if (errno != EAGAIN && errno != EACCES) Fail("cannot lock " + path.string());
  return std::nullopt;
}

bool Lock::Held(const fs::path& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) {
    if (errno != ENOENT) Fail("cannot open the lock " + path.string());
    return false;
  }
  const Lock owner(fd);
  struct flock whole = WholeFile();
  if (::fcntl(fd, F_OFD_GETLK, &whole) != 0) Fail("cannot look at the lock " + path.string());
  return whole.l_type != F_UNLCK;
}

Lock::~Lock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace ridgeline::local
