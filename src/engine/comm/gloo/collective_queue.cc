#include "engine/comm/gloo/collective_queue.h"

#include "base/clock.h"

namespace ridgeline::engine {

CollectiveQueue::CollectiveQueue(Communicator& communicator)
    : communicator_(communicator), thread_([this] { Fly(); }) {}

CollectiveQueue::~CollectiveQueue() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

template <typename Condition>
void CollectiveQueue::WaitUntil(std::unique_lock<std::mutex>& lock, const Condition& condition) {
  if (condition()) return;  // reads no clock if there is nothing to wait for
  const int64_t begin_ns = SystemClock().MonotonicNs();
  changed_.wait(lock, condition);
  waited_ns_ += SystemClock().MonotonicNs() - begin_ns;
}

void CollectiveQueue::Begin(int32_t flight, Work work, const OpCall& call, const CpuRun& run) {
  std::unique_lock lock(mutex_);
  WaitUntil(lock, [&] { return begun_ - landed_ < static_cast<int64_t>(jobs_.size()) || failed_; });
  if (failed_) std::rethrow_exception(failed_);
  const auto id = static_cast<size_t>(flight);
  if (id >= number_of_.size()) number_of_.resize(id + 1);  // in the first step only
  jobs_[static_cast<size_t>(begun_) % jobs_.size()] = {work, &call, run};
  number_of_[id] = ++begun_;
  changed_.notify_all();
}

void CollectiveQueue::Wait(int32_t flight) {
  std::unique_lock lock(mutex_);
  const int64_t number = number_of_[static_cast<size_t>(flight)];
  WaitUntil(lock, [&] { return landed_ >= number || failed_; });
  if (failed_) std::rethrow_exception(failed_);
}

void CollectiveQueue::Fly() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return begun_ > landed_ || ending_; });
    if (begun_ == landed_) return;
    const Job job = jobs_[static_cast<size_t>(landed_) % jobs_.size()];
    lock.unlock();
    std::exception_ptr failed;
    try {
      job.work(*job.call, job.run, communicator_);
    } catch (...) {
      failed = std::current_exception();
    }
    lock.lock();
    failed_ = failed;
    ++landed_;
    changed_.notify_all();
    if (failed_) return;
  }
}

}  // namespace ridgeline::engine
