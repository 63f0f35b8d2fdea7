#include "node/feed_log.h"

#include <unistd.h>

#include <string>

#include "ridgeline/foreign_file.h"

namespace ridgeline::node {
namespace {

constexpr size_t kReadBytes = size_t{1} << 20;

}  // namespace

int64_t FeedLog(const std::filesystem::path& log, int64_t begin, int64_t most_bytes,
                const std::function<void(std::string_view)>& feed) {
  const ForeignFile file(log);
  std::string part(kReadBytes, '\0');
  int64_t read = 0;
  while (file.is_open() && read < most_bytes) {
    const ssize_t count = ::pread(file.fd(), part.data(), part.size(), begin + read);
    if (count <= 0) break;
    feed(std::string_view(part).substr(0, static_cast<size_t>(count)));
    read += count;
  }
  return read;
}

}  // namespace ridgeline::node
