// Admits a limited number of threads at once, in the order of their arrival.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

namespace ridgeline::serve {

// Thread safety: all of it.
class FairSemaphore {
 public:
  explicit FairSemaphore(int64_t places) : free_(places) {}

  struct Leave {
    void operator()(FairSemaphore* semaphore) const { semaphore->GiveBack(); }
  };
  // A place, held until this is destroyed.
  using Place = std::unique_ptr<FairSemaphore, Leave>;

  // Waits for a place, after earlier callers. Null if none was free within `patience`.
  Place Enter(std::chrono::seconds patience);

 private:
  void GiveBack();

  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t free_;
  std::deque<int64_t> waiting_;  // by the waiters' numbers
  int64_t next_number_ = 0;
};

}  // namespace ridgeline::serve
