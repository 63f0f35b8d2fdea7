// Answers requests for every page, metric and event by its address, read-only and independent of the transport.
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "base/clock.h"
#include "serve/fair_semaphore.h"
#include "serve/feed.h"
#include "serve/health.h"
#include "serve/http.h"
#include "serve/page_cache.h"
#include "store/store.h"

namespace ridgeline::serve {

// Thread safety: all of it.
class Site {
 public:
  // The limits on each page's use of the database.
  static constexpr store::StoreLimits kLimits = {.longest_lock = std::chrono::seconds(5),
                                                 .longest_question = std::chrono::seconds(30),
                                                 .most_answer_bytes = size_t{256} << 20,
                                                 .most_copied_bytes = uintmax_t{64} << 20,
                                                 .cache_bytes = int64_t{32} << 20};

  // `report_folders`: as from ReportFolders. `clock` must outlive it. `base_path`: the prefix that a proxy puts before
  // every address, with which links begin.
  Site(const std::filesystem::path& db, std::vector<std::filesystem::path> report_folders, const Clock& clock,
       std::string base_path = {});

  // The answer to any request. An error is an answer, too.
  PageAnswer Answer(const PageRequest& request);

  // The current content of the element `live` of the first page, or of a sweep's.
  std::string Live(const std::string& sweep);

 private:
  // Reading a large store takes memory and a core. So only this many pages are made at once, and of reports, which hold
  // a whole answer in memory, only one. The others wait for a limited time.
  static constexpr int64_t kReadersAtOnce = 2;
  static constexpr int64_t kReportsAtOnce = 1;
  static constexpr std::chrono::seconds kReaderPatience{50};  // less than a client waits

  PageAnswer Made(const PageRequest& request);
  PageAnswer Route(const PageRequest& request);
  PageAnswer Metrics(const PageRequest& request);
  PageAnswer HealthAnswer();
  // The files from which a page of that address is made, if it is lasting.
  std::vector<std::filesystem::path> FilesOf(const PageRequest& request) const;
  std::vector<std::string> ReportNames() const;

  const std::filesystem::path db_;
  const std::vector<std::filesystem::path> report_folders_;
  const Links links_;
  LiveFeed feed_;
  Health health_;
  PageCache cache_;
  FairSemaphore readers_{kReadersAtOnce};
  FairSemaphore reports_{kReportsAtOnce};
};

}  // namespace ridgeline::serve
