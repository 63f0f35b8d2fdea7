// Reads once what runs now, for all watchers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "base/clock.h"
#include "metrics/live.h"
#include "serve/fair_semaphore.h"

namespace ridgeline::serve {

struct LiveNow {
  metrics::StoreNow now;
  std::map<std::string, std::string> names;  // of the running points, by their ids: what distinguishes them
  std::string trouble;                       // why nothing can be seen; empty: no trouble
};

// Thread safety: all of it.
class LiveFeed {
 public:
  // `clock` must outlive it.
  LiveFeed(std::filesystem::path db, const Clock& clock) : db_(std::move(db)), clock_(clock) {}

  // The state of at most a second ago, or of nine times the duration of a look ago, whichever is more. If another
  // caller's look does not end, a waiting caller is told so after some seconds.
  std::shared_ptr<const LiveNow> Latest();

 private:
  LiveNow Look() const;

  const std::filesystem::path db_;
  const Clock& clock_;
  FairSemaphore one_looks_{1};             // guards the members below
  std::shared_ptr<const LiveNow> latest_;  // nullptr: no look yet
  int64_t next_ns_ = 0;                    // earliest time of the next look
};

}  // namespace ridgeline::serve
