// Threads for requests of one kind, so that those that take long, or wait for a database that hangs, keep no others
// waiting.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace ridgeline {

// Thread safety: all of it.
class Lane {
 public:
  // `waiting`: tasks that may wait for a thread.
  Lane(size_t threads, size_t waiting);
  // Waits for the tasks that were begun.
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  // False where too many wait: it is not taken.
  bool Take(std::function<void()> task);
  // Begins no more of them; those that wait are dropped.
  void End();
  // Whether all that were begun have ended, before that time.
  bool HasEnded(std::chrono::steady_clock::time_point until);

 private:
  void Work();

  const size_t most_;  // at work and waiting
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  size_t at_work_ = 0;
  bool ended_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace ridgeline
