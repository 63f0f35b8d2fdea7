#include "local/lock.h"

#include <fcntl.h>
#include <sys/stat.h>
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

// Opens a regular file, and follows no link: a link could make a file elsewhere, and a pipe would block. Returns -1 and
// sets errno if the file cannot be opened.
int Open(const fs::path& path, int flags) {
  const int fd = ::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | flags, 0666);
  struct stat info {};
  if (fd < 0 && errno != ELOOP) return fd;
  if (fd >= 0 && ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) return fd;
  if (fd >= 0) ::close(fd);
  throw Failure(Failure::Kind::kInfrastructure, "the lock " + path.string() + " is not a regular file",
                "remove it, and try again");
}

struct flock WholeFile() {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

}  // namespace

std::optional<Lock> Lock::Try(const fs::path& path) {
  Lock lock(Open(path, O_CREAT));
  if (lock.fd_ < 0) Fail("cannot open the lock " + path.string());
  struct flock whole = WholeFile();
  if (::fcntl(lock.fd_, F_OFD_SETLK, &whole) == 0) return lock;
  if (errno != EAGAIN && errno != EACCES) Fail("cannot lock " + path.string());
  return std::nullopt;
}

bool Lock::Held(const fs::path& path) {
  const Lock owner(Open(path, 0));
  if (owner.fd_ < 0) {
    if (errno != ENOENT) Fail("cannot open the lock " + path.string());
    return false;
  }
  struct flock whole = WholeFile();
  if (::fcntl(owner.fd_, F_OFD_GETLK, &whole) != 0) Fail("cannot look at the lock " + path.string());
  return whole.l_type != F_UNLCK;
}

Lock::~Lock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace ridgeline::local
