#include "common/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

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

void Write(const fs::path& path, std::string_view text, bool synced) {
  const fs::path temporary = path.string() + "." + std::to_string(::getpid()) + ".tmp";
  std::ofstream out(temporary, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  if (out && synced) Sync(temporary);
  if (!out || ::rename(temporary.c_str(), path.c_str()) != 0) {
    const int saved_errno = errno;
    ::unlink(temporary.c_str());
    errno = saved_errno;
    Fail("cannot write " + path.string());
  }
  if (synced) Sync(path.parent_path());
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

void WriteText(const fs::path& path, std::string_view text) { Write(path, text, false); }

void WriteTextSynced(const fs::path& path, std::string_view text) { Write(path, text, true); }

void ReadLines(const fs::path& path, const std::function<void(std::string_view line)>& take) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat info {};
  if (!file || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) return;
  int64_t offset = 0;
  ReadWholeLines(file.get(), offset, [&](std::string_view line) {
    take(line);
    return true;
  });
}

void AppendLineSynced(const fs::path& path, std::string_view line) {
  const Fd file(::open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644));
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
