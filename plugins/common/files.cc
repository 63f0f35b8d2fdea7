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
#include "ridgeline/job_line.h"

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
  constexpr size_t kReadBytes = 1 << 20;
  const Fd file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat info {};
  if (!file || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) return;
  std::string rest;  // of a line that has begun
  for (;;) {
    const size_t had = rest.size();
    rest.resize(had + kReadBytes);
    const ssize_t n = ::read(file.get(), rest.data() + had, kReadBytes);
    rest.resize(had + static_cast<size_t>(std::max<ssize_t>(n, 0)));
    if (n == 0 || (n < 0 && errno != EINTR)) return;
    size_t begin = 0;
    for (size_t end = rest.find('\n', had); end != std::string::npos; end = rest.find('\n', begin)) {
      take(std::string_view(rest).substr(begin, end - begin));
      begin = end + 1;
    }
    rest.erase(0, rest.size() - begin > kMaxJobLineBytes ? rest.size() : begin);
  }
}

void AppendLineSynced(const fs::path& path, std::string_view line) {
  const Fd file(::open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!file) Fail("cannot write " + path.string());
  const off_t size = ::lseek(file.get(), 0, SEEK_END);
  char last = '\n';
  if (size > 0 && ::pread(file.get(), &last, 1, size - 1) != 1) Fail("cannot read " + path.string());
  const std::string text = (last == '\n' ? "" : "\n") + std::string(line);
  for (size_t at = 0; at < text.size();) {
    const ssize_t n = ::write(file.get(), text.data() + at, text.size() - at);
    if (n < 0 && errno != EINTR) Fail("cannot write " + path.string());
    at += static_cast<size_t>(std::max<ssize_t>(n, 0));
  }
  if (::fsync(file.get()) != 0) Fail("cannot write " + path.string());
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
