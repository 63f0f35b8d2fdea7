// Threads for requests of one kind, so that slow requests, or those that wait for a hanging database, do not delay
// others.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace ridgeline::serve {

// Thread safety: all of it.
class Lane {
 public:
  // `waiting`: the most tasks that may wait for a thread.
  Lane(size_t threads, size_t waiting);
  // Waits for the tasks that have begun.
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  // Returns false if too many tasks wait; then it does not take the task.
  bool Take(std::function<void()> task);
  // Begins no more tasks; drops those that wait.
  void End();
  // Whether all tasks that had begun have ended before that time.
  bool HasEnded(std::chrono::steady_clock::time_point until);

 private:
  void Join();
  void Work();

  const size_t most_;  // tasks that run or wait
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  size_t at_work_ = 0;
  bool ended_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace ridgeline::serve
