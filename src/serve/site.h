// Every page, metric and event by its address, read-only: what a server asks, whatever carries it.
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "base/clock.h"
#include "serve/feed.h"
#include "serve/health.h"
#include "serve/http.h"
#include "serve/page_cache.h"
#include "serve/turnstile.h"
#include "store/store.h"

namespace ridgeline {

// Thread safety: all of it.
class Site {
 public:
  // Of each page: what it may take of the database.
  static constexpr StoreLimits kLimits = {.longest_lock = std::chrono::seconds(5),
                                          .longest_question = std::chrono::seconds(30),
                                          .most_answer_bytes = size_t{256} << 20,
                                          .cache_bytes = int64_t{32} << 20};

  // `report_folders` as ReportFolders has them. `clock` must outlive it. `base_path`: what a proxy has before every
  // address, which links begin with.
  Site(const std::filesystem::path& db, std::vector<std::filesystem::path> report_folders, const Clock& clock,
       std::string base_path = {});

  // The answer, whatever was asked: what is wrong is one, too.
  PageAnswer Answer(const PageRequest& request);

  // What stands in the element `live` of the first page, or of a sweep's, now.
  std::string Live(const std::string& sweep);

 private:
  // Reading a large store takes memory and a core: so many pages at once, and the others wait, but not for ever.
  static constexpr int64_t kReadersAtOnce = 2;
  static constexpr std::chrono::seconds kReaderPatience{30};

  PageAnswer Made(const PageRequest& request);
  PageAnswer Route(const PageRequest& request);
  PageAnswer Metrics(const PageRequest& request);
  PageAnswer HealthAnswer();
  // What a page of that address is made of, if it is lasting.
  std::vector<std::filesystem::path> FilesOf(const PageRequest& request) const;
  std::vector<std::string> ReportNames() const;

  const std::filesystem::path db_;
  const std::vector<std::filesystem::path> report_folders_;
  const Links links_;
  LiveFeed feed_;
  Health health_;
  PageCache cache_;
  Turnstile readers_{kReadersAtOnce};
};

}  // namespace ridgeline
