#include "serve/fair_semaphore.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace ridgeline::serve {
namespace {

TEST(FairSemaphore, LetsNoMoreInThanThereArePlaces) {
  FairSemaphore semaphore(2);
  const FairSemaphore::Place first = semaphore.Enter(std::chrono::seconds(0));
  FairSemaphore::Place second = semaphore.Enter(std::chrono::seconds(0));
  EXPECT_NE(first, nullptr);
  EXPECT_NE(second, nullptr);
  EXPECT_EQ(semaphore.Enter(std::chrono::seconds(0)), nullptr);
  second.reset();
  EXPECT_NE(semaphore.Enter(std::chrono::seconds(0)), nullptr) << "one left, and one gave up before";
}

TEST(FairSemaphore, EveryWaiterEntersInTheEnd) {
  FairSemaphore semaphore(1);
  int64_t entered = 0;  // changed only by the holder of the place
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 100; ++round) {
        const FairSemaphore::Place place = semaphore.Enter(std::chrono::seconds(600));
        if (place != nullptr) ++entered;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(entered, 800);
}

}  // namespace
}  // namespace ridgeline::serve
