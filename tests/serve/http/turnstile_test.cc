#include "serve/turnstile.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace ridgeline {
namespace {

TEST(Turnstile, LetsNoMoreInThanThereArePlaces) {
  Turnstile turnstile(2);
  const Turnstile::Place first = turnstile.Enter(std::chrono::seconds(0));
  Turnstile::Place second = turnstile.Enter(std::chrono::seconds(0));
  EXPECT_NE(first, nullptr);
  EXPECT_NE(second, nullptr);
  EXPECT_EQ(turnstile.Enter(std::chrono::seconds(0)), nullptr);
  second.reset();
  EXPECT_NE(turnstile.Enter(std::chrono::seconds(0)), nullptr) << "one left, and one gave up before";
}

TEST(Turnstile, EveryWaiterEntersInTheEnd) {
  Turnstile turnstile(1);
  int64_t entered = 0;  // changed only by the holder of the place
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 100; ++round) {
        const Turnstile::Place place = turnstile.Enter(std::chrono::seconds(600));
        if (place != nullptr) ++entered;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(entered, 800);
}

}  // namespace
}  // namespace ridgeline
