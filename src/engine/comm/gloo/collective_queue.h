// Runs collectives on a thread of their own, one after another in the order they were begun, so that they fly while the
// program computes. Every rank begins the same ones in the same order.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/device/cpu/kernel.h"

namespace ridgeline {

class Communicator;

class CollectiveQueue {
 public:
  using Work = void (*)(const OpCall& call, const CpuRun& run, Communicator& communicator);

  explicit CollectiveQueue(Communicator& communicator);
  CollectiveQueue(const CollectiveQueue&) = delete;
  CollectiveQueue& operator=(const CollectiveQueue&) = delete;
  // Ends after what is begun, or at once where a collective failed.
  ~CollectiveQueue();

  // `flight` names it for Wait, until it is begun again. `call` must live until then. Blocks while too many are begun.
  void Begin(int32_t flight, Work work, const OpCall& call, const CpuRun& run);
  // Until the flight has landed. Throws what a collective threw.
  void Wait(int32_t flight);
  // How long Begin and Wait have held up the program so far: for ranks that were later, and for bytes on their way. For
  // the program's thread.
  int64_t waited_ns() const { return waited_ns_; }

 private:
  struct Job {
    Work work = nullptr;
    const OpCall* call = nullptr;
    CpuRun run;
  };
  void Fly();
  template <typename Condition>
  void WaitUntil(std::unique_lock<std::mutex>& lock, const Condition& condition);

  Communicator& communicator_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::array<Job, 32> jobs_;  // the n-th begun is at n % size
  int64_t begun_ = 0;
  int64_t landed_ = 0;
  std::vector<int64_t> number_of_;  // of a flight
  std::exception_ptr failed_;
  bool ending_ = false;
  int64_t waited_ns_ = 0;
  std::thread thread_;
};

}  // namespace ridgeline
