#include "base/files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "ridgeline/foreign_file.h"

namespace ridgeline {
namespace fs = std::filesystem;

Fd::~Fd() {
  if (fd_ >= 0) ::close(fd_);
}

void WriteAll(int fd, std::string_view bytes, const fs::path& path) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0) {
      if (errno == EINTR) continue;
      ThrowErrno("cannot write " + path.string());
    }
    bytes.remove_prefix(static_cast<size_t>(n));
  }
}

std::string ReadFile(const fs::path& path) {
  std::optional<std::string> bytes = ReadFileIfThere(path);
  if (bytes) return *std::move(bytes);
  errno = ENOENT;
  ThrowErrno("cannot read " + path.string());
}

std::optional<std::string> ReadFileIfThere(const fs::path& path, size_t most) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) {
    if (errno == ENOENT) return std::nullopt;
    ThrowErrno("cannot read " + path.string());
  }
  std::string bytes;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t n = ::read(fd.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) ThrowErrno("cannot read " + path.string());
    if (n == 0) return bytes;
    bytes.append(buffer, std::min(static_cast<size_t>(n), most - bytes.size()));
    if (bytes.size() == most) return bytes;
  }
}

std::optional<std::string> ReadForeignFile(const fs::path& path, size_t max_bytes, ForeignFile::Links links) {
  ForeignFile file(path, links);
  if (file.state() == ForeignFile::State::kMissing) return std::nullopt;
  std::optional<std::string> bytes = file.Read(max_bytes);
  if (!bytes) ThrowUnread(file);
  return bytes;
}

void ThrowUnread(const ForeignFile& file) {
  const bool unfit = file.state() == ForeignFile::State::kUnfit;
  throw Error(unfit ? ErrorKind::kInvalidInput : ErrorKind::kInfrastructure,
              file.path().string() + " " + file.problem());
}

int64_t ModifiedUnixNs(const fs::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return 0;
  return int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
}

std::string ReadTail(const fs::path& path, size_t max_bytes) {
  return ForeignFile(path).ReadTail(max_bytes).value_or("");
}

std::string ReadLogTail(const fs::path& path, size_t max_bytes) {
  ForeignFile file(path);
  std::optional<std::string> tail = file.ReadTail(max_bytes);
  if (tail || file.state() != ForeignFile::State::kUnreadable) return std::move(tail).value_or("");
  return "[this log " + file.problem() + "]";
}

bool IsDevice(const fs::path& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return false;
  // /dev/stdout and similar paths are links, which may lead to pipes and files.
  return S_ISCHR(info.st_mode) || (path.parent_path() == "/dev" && fs::is_symlink(path)) ||
         path.parent_path() == "/dev/fd";
}

namespace {

// Creates a new file beside `path`, named after it. Its mode goes through open, because a mode that is set afterwards
// would ignore the umask.
int MakeTemporary(const fs::path& path, const fs::path& dir, mode_t mode, std::string& name) {
  for (int number = 0;; ++number) {
    name = (dir / fmt::format(".{}.{}-{}", path.filename().string(), ::getpid(), number)).string();
    const int fd = ::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd >= 0 || errno != EEXIST) return fd;
  }
}

// Writes a temporary file beside `path` and renames it over `path`.
void Replace(const fs::path& path, std::string_view bytes, bool synced, mode_t mode = 0666) {
  if (IsDevice(path)) {
    const Fd device(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
    if (device.get() < 0) ThrowErrno("cannot write " + path.string());
    return WriteAll(device.get(), bytes, path);
  }
  const fs::path dir = path.has_parent_path() ? path.parent_path() : fs::path(".");
  std::string temporary;
  {
    Fd fd(MakeTemporary(path, dir, mode, temporary));
    if (fd.get() < 0) ThrowErrno("cannot write in " + dir.string());
    try {
      WriteAll(fd.get(), bytes, path);
      if (synced && ::fsync(fd.get()) != 0) ThrowErrno("cannot write " + path.string());
    } catch (...) {
      ::unlink(temporary.c_str());
      throw;
    }
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    const int saved_errno = errno;
    ::unlink(temporary.c_str());
    errno = saved_errno;
    ThrowErrno("cannot rename to " + path.string());
  }
  if (!synced) return;
  Fd folder(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() >= 0) ::fsync(folder.get());
}

}  // namespace

void WriteFileAtomic(const fs::path& path, std::string_view bytes) { Replace(path, bytes, true); }

void WriteFile(const fs::path& path, std::string_view bytes) { Replace(path, bytes, false); }

void WritePrivateFile(const fs::path& path, std::string_view bytes) { Replace(path, bytes, false, 0600); }

void OverwriteFile(const fs::path& path, std::string_view bytes) {
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (fd.get() < 0) ThrowErrno("cannot write " + path.string());
  WriteAll(fd.get(), bytes, path);
}

FileWriter::FileWriter(fs::path path)
    : path_(std::move(path)), fd_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) {
  if (fd_ < 0) ThrowErrno("cannot write " + path_.string());
}

FileWriter::~FileWriter() { ::close(fd_); }

void FileWriter::Append(std::string_view bytes) { WriteAll(fd_, bytes, path_); }

void FileWriter::Sync() {
  if (::fsync(fd_) != 0) ThrowErrno("cannot write " + path_.string());
}

void WriteSynced(const fs::path& path, std::string_view text) {
  FileWriter file(path);
  file.Append(text);
  file.Sync();
}

FileReader::FileReader(fs::path path, ForeignFile::Links links) : path_(std::move(path)) {
  ForeignFile file(path_, links);
  if (!file.is_open()) ThrowUnread(file);
  size_ = file.size();
  fd_ = file.Release();
}

FileReader::~FileReader() { ::close(fd_); }

void FileReader::ReadAt(int64_t offset, std::span<char> to) const {
  while (!to.empty()) {
    const ssize_t n = ::pread(fd_, to.data(), to.size(), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) ThrowErrno("cannot read " + path_.string());
    if (n == 0) throw Error(ErrorKind::kInfrastructure, path_.string() + " ended while it was being read");
    offset += n;
    to = to.subspan(static_cast<size_t>(n));
  }
}

void SyncFolder(const fs::path& path) {
  const Fd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Some file systems cannot sync a folder, and say so with EINVAL.
  if (folder.get() < 0 || (::fsync(folder.get()) != 0 && errno != EINVAL)) {
    ThrowErrno("cannot sync the folder " + path.string());
  }
}

void MakeDirs(const fs::path& path) {
  std::error_code ec;
  fs::create_directories(path, ec);
  std::error_code ignored;  // a loop of links, for example, is no folder
  if (ec && !fs::is_directory(path, ignored)) {
    throw Error(ErrorKind::kInfrastructure, "cannot make the folder " + path.string() + ": " + ec.message(),
                "name a folder that can be written");
  }
}

std::optional<FileLock> FileLock::Try(const fs::path& path) {
  for (int tries = 1;; ++tries) {
    // Refuses links and does not wait: a link would make us create a file elsewhere, and a pipe would wait for a
    // reader.
    Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666));
    struct stat info {};
    if (fd.get() < 0 && errno != ELOOP) ThrowErrno("cannot open the lock " + path.string());
    if (fd.get() < 0 || ::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
      throw Error(ErrorKind::kInfrastructure, "the lock " + path.string() + " is not a regular file",
                  "remove it, and try again");
    }
    while (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK) return std::nullopt;
      if (errno != EINTR) ThrowErrno("cannot lock " + path.string());
    }
    // Its holder may have removed the file after we opened it. Then others lock a new file of that name. On a file
    // system whose files have no lasting numbers, the last try counts.
    constexpr int kMostTries = 100;
    struct stat named {};
    const bool is_it = ::lstat(path.c_str(), &named) == 0 && named.st_dev == info.st_dev && named.st_ino == info.st_ino;
    if (is_it || tries == kMostTries) return FileLock(fd.release());
  }
}

FileLock& FileLock::operator=(FileLock&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

FileLock::~FileLock() {
  if (fd_ >= 0) ::close(fd_);
}

fs::path ProgramFile() {
  std::error_code ec;
  fs::path self = fs::read_symlink("/proc/self/exe", ec);
  if (ec) return fs::current_path() / "ridgeline";
  if (!self.filename().string().starts_with("ld")) return self;
  // The loader was started with the program as its argument. The program is the file that contains this function's
  // code.
  const auto here = reinterpret_cast<uintptr_t>(&ProgramFile);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin = 0;
    uintptr_t end = 0;
    const char* const text = line.c_str();
    const auto [dash, error] = std::from_chars(text, text + line.size(), begin, 16);
    if (error != std::errc() || *dash != '-') continue;
    std::from_chars(dash + 1, text + line.size(), end, 16);
    const size_t path = line.find('/');
    if (begin <= here && here < end && path != std::string::npos) return line.substr(path);
  }
  return self;
}

fs::path ProgramDir() { return ProgramFile().parent_path(); }

std::optional<fs::path> FindDataDir(const std::string& name) {
  if (const char* home = std::getenv("RIDGELINE_HOME")) return fs::path(home) / name;
  const fs::path program = ProgramDir();
  for (const fs::path& candidate :
       {program / name, program / "../lib/ridgeline" / name, program / "../share/ridgeline" / name}) {
    if (fs::is_directory(candidate)) return fs::weakly_canonical(candidate);
  }
  return std::nullopt;
}

fs::path DataDir(const std::string& name) {
  if (const auto folder = FindDataDir(name)) return *folder;
  throw Error(ErrorKind::kInfrastructure, "the folder '" + name + "' was not found beside " + ProgramDir().string(),
              "set RIDGELINE_HOME to the folder that holds plugins, reports and sweeps");
}

}  // namespace ridgeline
