#include "serve/feed.h"

#include <algorithm>
#include <chrono>
#include <exception>

#include "base/error.h"
#include "serve/names.h"
#include "serve/site.h"
#include "store/store.h"

namespace ridgeline::serve {
namespace {

constexpr int64_t kLookEveryNs = 1'000'000'000;
constexpr int64_t kRestForEach = 9;
constexpr auto kLookPatience = std::chrono::seconds(10);

}  // namespace

LiveNow LiveFeed::Look() const {
  LiveNow live;
  try {
    store::Store store = store::Store::Open(db_, store::Store::Mode::kReadOnly, {}, Site::kLimits);
    live.now = metrics::LookNow(store, db_, clock_);
    for (const metrics::SweepNow& sweep : live.now.sweeps) {
      std::vector<std::string> ids;
      for (const metrics::RunningPoint& point : sweep.running) ids.push_back(point.point_id);
      live.names.merge(NamesInSweep(store, sweep.progress.sweep.name, ids));
    }
  } catch (const Error& e) {
    live.trouble = e.message() + (e.hint().empty() ? "" : ": " + e.hint());
  }
  return live;
}

std::shared_ptr<const LiveNow> LiveFeed::Latest() {
  const FairSemaphore::Place place = one_looks_.Enter(kLookPatience);
  if (place == nullptr) {
    LiveNow live;
    live.trouble = "the database " + db_.string() + " does not answer: its disk may hang, or it is locked";
    return std::make_shared<const LiveNow>(std::move(live));
  }
  const int64_t begin_ns = clock_.MonotonicNs();
  if (latest_ != nullptr && begin_ns < next_ns_) return latest_;
  latest_ = std::make_shared<const LiveNow>(Look());
  const int64_t end_ns = clock_.MonotonicNs();
  // A failed look says nothing about the duration of the next one.
  const int64_t rest_ns = latest_->trouble.empty() ? kRestForEach * (end_ns - begin_ns) : 0;
  next_ns_ = end_ns + std::max(kLookEveryNs, rest_ns);
  return latest_;
}

}  // namespace ridgeline::serve
