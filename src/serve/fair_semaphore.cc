#include "serve/fair_semaphore.h"

#include <algorithm>

namespace ridgeline::serve {

FairSemaphore::Place FairSemaphore::Enter(std::chrono::seconds patience) {
  std::unique_lock lock(mutex_);
  const int64_t number = next_number_++;
  waiting_.push_back(number);
  const bool entered = changed_.wait_for(lock, patience, [&] { return free_ > 0 && waiting_.front() == number; });
  waiting_.erase(std::find(waiting_.begin(), waiting_.end(), number));
  if (entered) --free_;
  changed_.notify_all();  // another waiter is now first
  return Place(entered ? this : nullptr);
}

void FairSemaphore::GiveBack() {
  const std::lock_guard lock(mutex_);
  ++free_;
  changed_.notify_all();
}

}  // namespace ridgeline::serve
