#include "common/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <utility>

#include "common/failure.h"
#include "common/process.h"
#include "ridgeline/line_file.h"

namespace ridgeline::plugin {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void Fail(const std::string& what) {
  throw Failure(Failure::Kind::kInfrastructure, what + ": " + std::strerror(errno));
}

void Sync(const fs::path& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file || ::fsync(file.get()) != 0) Fail("cannot write " + path.string());
}

// Returns false and sets errno if the file cannot be written.
bool WriteNew(const fs::path& path, std::string_view text, bool synced) {
  const Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file) return false;
  while (!text.empty()) {
    const ssize_t n = ::write(file.get(), text.data(), text.size());
    if (n < 0 && errno != EINTR) return false;
    if (n > 0) text.remove_prefix(static_cast<size_t>(n));
  }
  return !synced || ::fsync(file.get()) == 0;
}

void Write(const fs::path& path, std::string_view text, bool synced) {
  const fs::path temporary = path.string() + "." + std::to_string(::getpid()) + ".tmp";
  ::unlink(temporary.c_str());  // left by a killed process that had our number
  const bool written = WriteNew(temporary, text, synced);
  if (!written || ::rename(temporary.c_str(), path.c_str()) != 0) {
    const int saved_errno = errno;
    ::unlink(temporary.c_str());
    errno = saved_errno;
    Fail("cannot write " + path.string());
  }
  if (synced) Sync(path.parent_path());
}

}  // namespace

std::string ReadText(const fs::path& path, size_t max_bytes, ForeignFile::Links links) {
  ForeignFile file(path, links);
  if (file.state() == ForeignFile::State::kMissing) return {};
  std::optional<std::string> text = file.Read(max_bytes);
  if (!text) throw Failure(Failure::Kind::kInfrastructure, path.string() + " " + file.problem());
  return *std::move(text);
}

std::string ReadTextTail(const fs::path& path, size_t max_bytes) {
  ForeignFile file(path);
  std::optional<std::string> tail = file.ReadTail(max_bytes);
  if (tail || file.state() != ForeignFile::State::kUnreadable) return std::move(tail).value_or("");
  return "[this log " + file.problem() + "]";
}

void WriteText(const fs::path& path, std::string_view text) { Write(path, text, false); }

void WriteTextSynced(const fs::path& path, std::string_view text) { Write(path, text, true); }

void ReadLines(const fs::path& path, const std::function<void(std::string_view line)>& take) {
  const ForeignFile file(path);
  if (file.state() == ForeignFile::State::kUnreadable) {
    throw Failure(Failure::Kind::kInfrastructure, path.string() + " " + file.problem());
  }
  if (!file.is_open() || file.size() > static_cast<int64_t>(kMaxResultsFileBytes)) return;
  int64_t offset = 0;
  const bool read = ReadWholeLines(file.fd(), offset, [&](std::string_view line) {
    take(line);
    return true;
  });
  if (!read) Fail("cannot read " + path.string());
}

void AppendLineSynced(const fs::path& path, std::string_view line) {
  const Fd file(::open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666));
  if (!file || !ridgeline::AppendLineSynced(file.get(), line)) Fail("cannot write " + path.string());
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

}  // namespace ridgeline::plugin
