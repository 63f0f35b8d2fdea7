#include "serve/lane.h"

#include <utility>

namespace ridgeline::serve {

Lane::Lane(size_t threads, size_t waiting) : most_(threads + waiting) {
  try {
    for (size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
  } catch (...) {  // no destructor follows, and a thread that nobody joins ends the program
    Join();
    throw;
  }
}

Lane::~Lane() { Join(); }

void Lane::Join() {
  End();
  for (std::thread& thread : threads_) thread.join();
}

bool Lane::Take(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    if (ended_ || tasks_.size() + at_work_ >= most_) return false;
    tasks_.push_back(std::move(task));
  }
  changed_.notify_all();
  return true;
}

void Lane::End() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    tasks_.clear();
  }
  changed_.notify_all();
}

bool Lane::HasEnded(std::chrono::steady_clock::time_point until) {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, until, [&] { return at_work_ == 0; });
}

void Lane::Work() {
  for (;;) {
    std::function<void()> task;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return ended_ || !tasks_.empty(); });
      if (ended_) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
      ++at_work_;
    }
    task();
    {
      const std::lock_guard lock(mutex_);
      --at_work_;
    }
    changed_.notify_all();
  }
}

}  // namespace ridgeline::serve
