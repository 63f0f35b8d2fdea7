// Runs collectives on a thread of its own, in the order in which they were started, so that they fly while the program
// computes. Every rank starts the same collectives in the same order.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/device/cpu/kernel.h"

namespace ridgeline::engine {

class Communicator;

class CollectiveQueue {
 public:
  using Work = void (*)(const OpCall& call, const CpuRun& run, Communicator& communicator);

  explicit CollectiveQueue(Communicator& communicator);
  CollectiveQueue(const CollectiveQueue&) = delete;
  CollectiveQueue& operator=(const CollectiveQueue&) = delete;
  // Ends after the started collectives, or at once if one failed.
  ~CollectiveQueue();

  // `flight` names it for Wait, until Begin uses it again. `call` must live until then. Blocks while too many are in
  // flight.
  void Begin(int32_t flight, Work work, const OpCall& call, const CpuRun& run);
  // Waits until the flight has landed. Throws what a collective threw.
  void Wait(int32_t flight);
  // Returns how long Begin and Wait have held up the program so far: for later ranks, and for bytes in flight. Only the
  // program's thread may call it.
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
  std::array<Job, 32> jobs_;  // the n-th started one is at n % size
  int64_t begun_ = 0;
  int64_t landed_ = 0;
  std::vector<int64_t> number_of_;  // by flight
  std::exception_ptr failed_;
  bool ending_ = false;
  int64_t waited_ns_ = 0;
  std::thread thread_;
};

}  // namespace ridgeline::engine
