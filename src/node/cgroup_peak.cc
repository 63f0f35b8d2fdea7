#include "node/cgroup_peak.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/cgroup.h"
#include "node/own_cgroup.h"

namespace ridgeline::node {
namespace {
namespace fs = std::filesystem;

// The file's current number; 0 if it has none.
int64_t NumberIn(const Fd& file) {
  std::array<char, 32> text{};
  const ssize_t size = ::pread(file.get(), text.data(), text.size(), 0);
  int64_t value = 0;
  if (size > 0) std::from_chars(text.data(), text.data() + size, value);
  return value;
}

bool HasOneBelow(const fs::path& cgroup) {
  std::error_code ec;
  for (fs::directory_iterator at(cgroup, ec), end; !ec && at != end; at.increment(ec)) {
    std::error_code none;
    if (at->is_directory(none)) return true;
  }
  return static_cast<bool>(ec);
}

bool IsOursAlone(const fs::path& cgroup) { return OnlyWeAreIn(cgroup) && !HasOneBelow(cgroup); }

}  // namespace

CgroupPeak::CgroupPeak(const fs::path& root, bool resets) {
  const CgroupFolders folders = CgroupsOf("memory", root);
  const auto take = [&](const std::vector<fs::path>& nearest_first, const char* name, bool may_reset) {
    for (const fs::path& folder : nearest_first) {
      if (file_) return;
      const fs::path file = folder / name;
      int fd = may_reset ? ::open(file.c_str(), O_RDWR | O_CLOEXEC) : -1;
      is_anew_ = fd >= 0 && ::pwrite(fd, "0\n", 2, 0) == 2;
      if (fd < 0) fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
      if (fd < 0) continue;
      file_.emplace(fd);
      folder_ = folder;
    }
  };
  take(folders.v2, "memory.peak", resets);
  take(folders.v1, "memory.max_usage_in_bytes", /*may_reset=*/false);  // a reset would affect all readers
  if (!file_ || !IsOursAlone(folder_)) {
    folder_.clear();
    return;
  }
  before_ = NumberIn(*file_);
}

int64_t CgroupPeak::Bytes() const {
  if (folder_.empty() || !IsOursAlone(folder_)) return 0;
  const int64_t now = NumberIn(*file_);
  return is_anew_ || now > before_ ? now : 0;
}

}  // namespace ridgeline::node
