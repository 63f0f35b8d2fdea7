// Caches pages for as long as the files behind them stay the same.
#pragma once

#include <cstddef>
#include <filesystem>
#include <list>
#include <mutex>
#include <optional>
#include <string>

#include "serve/http.h"

namespace ridgeline::serve {

// A stamp that changes when files change: their paths, sizes and times. Empty if one was written so recently that a
// further write might not change the stamp. Then nothing may be cached. A missing or empty file counts, too.
std::string StampOf(const std::vector<std::filesystem::path>& files);

// Thread safety: all of it.
class PageCache {
 public:
  // The limit for all cached pages, compressed. The least recently used go first.
  static constexpr size_t kMostBytes = size_t{16} << 20;

  // Bodies are stored and returned compressed (encoding "gzip"). Returns nothing if `stamp` differs from the stored
  // one.
  std::optional<PageAnswer> Find(const std::string& key, const std::string& stamp);
  void Put(const std::string& key, const std::string& stamp, const PageAnswer& answer);

 private:
  struct Kept {
    std::string key;
    std::string stamp;
    PageAnswer answer;
  };

  std::mutex mutex_;
  std::list<Kept> kept_;  // most recently used first
  size_t bytes_ = 0;
};

}  // namespace ridgeline::serve
