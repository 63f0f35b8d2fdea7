// Every page, metric and event by its address, read-only: what a server asks, whatever carries it.
#pragma once

#include <filesystem>
#include <semaphore>
#include <string>
#include <vector>

#include "base/clock.h"
#include "serve/feed.h"
#include "serve/http.h"

namespace ridgeline {

// Thread safety: all of it.
class Site {
 public:
  // `report_folders` as ReportFolders has them. `clock` must outlive it.
  Site(const std::filesystem::path& db, std::vector<std::filesystem::path> report_folders, const Clock& clock);

  // The answer, whatever was asked: what is wrong is one, too.
  PageAnswer Answer(const PageRequest& request);

  // What stands in the element `live` of the first page, or of a sweep's, now.
  std::string Live(const std::string& sweep);

 private:
  // Reading a large store takes memory and a core: so many at once, and the others wait.
  static constexpr std::ptrdiff_t kReadersAtOnce = 4;

  PageAnswer Route(const PageRequest& request);
  PageAnswer Metrics(const PageRequest& request);
  std::vector<std::string> ReportNames() const;

  const std::filesystem::path db_;
  const std::vector<std::filesystem::path> report_folders_;
  LiveFeed feed_;
  std::counting_semaphore<kReadersAtOnce> readers_{kReadersAtOnce};
};

}  // namespace ridgeline
