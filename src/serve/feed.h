// What runs now, looked at once for all who watch.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "base/clock.h"
#include "metrics/live.h"
#include "serve/turnstile.h"

namespace ridgeline {

struct LiveNow {
  StoreNow now;
  std::map<std::string, std::string> names;  // of the points that run, by their ids: what tells them from others
  std::string trouble;                       // why there is nothing to see; empty: there is
};

// Thread safety: all of it.
class LiveFeed {
 public:
  // `clock` must outlive it.
  LiveFeed(std::filesystem::path db, const Clock& clock) : db_(std::move(db)), clock_(clock) {}

  // As it was a second ago at most, or as long ago as nine times what it takes to look, whichever is more. Who waits
  // for another's look that does not end is told so after some seconds.
  std::shared_ptr<const LiveNow> Latest();

 private:
  LiveNow Look() const;

  const std::filesystem::path db_;
  const Clock& clock_;
  Turnstile one_looks_{1};                 // and has what follows
  std::shared_ptr<const LiveNow> latest_;  // nullptr: nobody has looked
  int64_t next_ns_ = 0;                    // not before
};

}  // namespace ridgeline
