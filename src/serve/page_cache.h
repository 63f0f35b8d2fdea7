// Pages as they were made, for as long as what they were made of stays as it was.
#pragma once

#include <cstddef>
#include <filesystem>
#include <list>
#include <mutex>
#include <optional>
#include <string>

#include "serve/http.h"

namespace ridgeline {

// What tells whether files have changed: their places, sizes and times. Empty where one was written to so lately that a
// write to come might leave all of that as it is: then nothing is to be kept of it. A file that is missing or empty
// counts, too.
std::string StampOf(const std::vector<std::filesystem::path>& files);

// Thread safety: all of it.
class PageCache {
 public:
  // Of all that is kept, compressed. What was not asked for longest goes first.
  static constexpr size_t kMostBytes = size_t{16} << 20;

  // Bodies are kept, and found, compressed (encoding "gzip"). Nothing where `stamp` is another than it was put with.
  std::optional<PageAnswer> Find(const std::string& key, const std::string& stamp);
  void Put(const std::string& key, const std::string& stamp, const PageAnswer& answer);

 private:
  struct Kept {
    std::string key;
    std::string stamp;
    PageAnswer answer;
  };

  std::mutex mutex_;
  std::list<Kept> kept_;  // what was asked for last is in front
  size_t bytes_ = 0;
};

}  // namespace ridgeline
