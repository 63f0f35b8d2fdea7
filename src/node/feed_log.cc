#include "node/feed_log.h"

#include <unistd.h>

#include <memory>

#include "ridgeline/foreign_file.h"

namespace ridgeline::node {
namespace {

constexpr size_t kReadBytes = size_t{1} << 16;

}  // namespace

int64_t FeedLog(const std::filesystem::path& log, int64_t begin, int64_t most_bytes,
                const std::function<void(std::string_view)>& feed) {
  const ForeignFile file(log);
  const auto part = std::make_unique_for_overwrite<char[]>(kReadBytes);  // this runs often, mostly to read nothing
  int64_t read = 0;
  while (file.is_open() && read < most_bytes) {
    const ssize_t count = ::pread(file.fd(), part.get(), kReadBytes, begin + read);
    if (count <= 0) break;
    feed(std::string_view(part.get(), static_cast<size_t>(count)));
    read += count;
  }
  return read;
}

}  // namespace ridgeline::node
