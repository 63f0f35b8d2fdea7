#include "serve/page_cache.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <ctime>

#include <fmt/format.h>

namespace ridgeline::serve {
namespace {

// Times of files advance with the kernel's tick, of 10 ms at most.
constexpr int64_t kSettledNs = 1'000'000'000;

int64_t Ns(const timespec& time) { return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; }

size_t BytesOf(const std::string& key, const std::string& stamp, const PageAnswer& answer) {
  return key.size() + stamp.size() + answer.body.size() + sizeof(PageAnswer);
}

}  // namespace

std::string StampOf(const std::vector<std::filesystem::path>& files) {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  std::string stamp;
  for (const std::filesystem::path& file : files) {
    struct stat info {};
    if (::stat(file.c_str(), &info) != 0 || info.st_size == 0) {
      stamp += "none\n";
      continue;
    }
    const int64_t changed = std::max(Ns(info.st_mtim), Ns(info.st_ctim));
    if (changed > Ns(now) - kSettledNs) return {};
    stamp += fmt::format("{} {} {} {} {}\n", info.st_dev, info.st_ino, info.st_size, Ns(info.st_mtim), changed);
  }
  return stamp;
}

std::optional<PageAnswer> PageCache::Find(const std::string& key, const std::string& stamp) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& kept) { return kept.key == key; });
  if (found == kept_.end() || found->stamp != stamp) return std::nullopt;
  kept_.splice(kept_.begin(), kept_, found);
  return found->answer;
}

void PageCache::Put(const std::string& key, const std::string& stamp, const PageAnswer& answer) {
  const std::lock_guard lock(mutex_);
  const auto old = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& kept) { return kept.key == key; });
  if (old != kept_.end()) {
    bytes_ -= BytesOf(old->key, old->stamp, old->answer);
    kept_.erase(old);
  }
  const size_t bytes = BytesOf(key, stamp, answer);
  if (bytes > kMostBytes / 4) return;
  kept_.push_front({key, stamp, answer});
  bytes_ += bytes;
  while (bytes_ > kMostBytes) {
    bytes_ -= BytesOf(kept_.back().key, kept_.back().stamp, kept_.back().answer);
    kept_.pop_back();
  }
}

}  // namespace ridgeline::serve
