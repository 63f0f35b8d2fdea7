#include "local/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "common/plugin_api.h"

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

std::string ReadText(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string ReadTextTail(const fs::path& path, size_t max_bytes) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in) return {};
  const auto size = static_cast<std::streamoff>(in.tellg());
  in.seekg(std::max<std::streamoff>(0, size - static_cast<std::streamoff>(max_bytes)));
  return {std::istreambuf_iterator<char>(in), {}};
}

void WriteText(const fs::path& path, std::string_view text) {
  const fs::path temporary = path.string() + "." + std::to_string(::getpid()) + ".tmp";
  std::ofstream out(temporary, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  if (!out || ::rename(temporary.c_str(), path.c_str()) != 0) {
    const int saved_errno = errno;
    ::unlink(temporary.c_str());
    errno = saved_errno;
    Fail("cannot write " + path.string());
  }
}

void MakeDirs(const fs::path& path) {
  std::error_code ec;
  fs::create_directories(path, ec);
  if (ec && !fs::is_directory(path, ec)) {
    throw Failure(Failure::Kind::kInfrastructure, "cannot make the folder " + path.string() + ": " + ec.message());
  }
}

void Remove(const fs::path& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) Fail("cannot remove " + path.string());
}

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
