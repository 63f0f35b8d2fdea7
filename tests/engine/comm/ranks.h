// Ranks as threads of a test: each has its own communicator, connected over this machine.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/port.h"
#include "engine/comm/gloo/gloo_communicator.h"

namespace ridgeline::testing {

inline engine::RankEnvironment PlaceOf(int64_t rank, int64_t world, const ReservedPort& port, double timeout_s = 300) {
  return {rank, world, "127.0.0.1", port.number(), timeout_s};
}

// Runs fn(rank) on one thread for each rank and returns what each threw, or "" if it threw nothing.
inline std::vector<std::string> OnThreads(int64_t world, const std::function<void(int64_t rank)>& fn) {
  std::vector<std::string> errors(static_cast<size_t>(world));
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < world; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        fn(rank);
      } catch (const Error& e) {
        errors[static_cast<size_t>(rank)] = e.message();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

// Runs fn with every rank's communicator; all must succeed.
inline void WithGloo(int64_t world, const std::function<void(engine::Communicator&)>& fn) {
  const ReservedPort port;
  const auto errors = OnThreads(world, [&](int64_t rank) {
    const auto communicator = engine::ConnectGloo(PlaceOf(rank, world, port), {{"spec", "the same"}});
    fn(*communicator);
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

}  // namespace ridgeline::testing
