// Kills of the driver after its n-th call of the service, and at random moments, on a double of SageMaker.
#include <algorithm>

#include "base/clock.h"
#include "tests/cluster/sagemaker/service.h"
#include "tests/torture/torture.h"

namespace ridgeline::testing {
namespace {

constexpr int64_t kLongestNs = 120'000'000'000;  // of a run that nobody kills

class SageMakerTorture : public SageMakerSweep {};

// The number of calls that the service has answered.
int64_t Answered(const SageMakerCli& cli) {
  const std::string calls = ReadFileIfThere(cli.service.dir() / "root/requests.jsonl").value_or("");
  return std::ranges::count(calls, '\n');
}

// Kills the driver once `is_time`. Returns whether it was still there.
bool KillsOnce(Child& driver, const std::function<bool()>& is_time) {
  const SystemClock clock;
  const int64_t end_ns = clock.MonotonicNs() + kLongestNs;
  while (!is_time() && clock.MonotonicNs() < end_ns) {
    if (driver.WaitFor(1'000'000)) return false;
  }
  driver.Signal(SIGKILL);
  return driver.Wait().signal == SIGKILL;
}

TEST_F(SageMakerTorture, OnSageMaker) {
  Torture("sagemaker", [](uint64_t seed) {
    constexpr int kPoints = 3;
    constexpr int64_t kCalls = 16;  // fewer than a whole run needs
    SageMakerCli cli;
    const auto sweep = Write(cli, kPoints, "slow=200");
    std::map<std::string_view, int64_t> hits;

    Child first = cli.Start({"run", sweep});
    const int64_t last_call = static_cast<int64_t>(seed) % kCalls;
    if (KillsOnce(first, [&] { return Answered(cli) >= last_call; })) ++hits["driver, after a call"];
    Child second = cli.Start({"run", sweep});
    std::mt19937_64 random(seed);
    const SystemClock clock;
    const int64_t at_ns = clock.MonotonicNs() + static_cast<int64_t>(random() % 2000) * 1'000'000;
    if (KillsOnce(second, [&] { return clock.MonotonicNs() >= at_ns; })) ++hits["driver, at a moment"];

    cli.ExpectOk(cli.Run({"run", sweep}));
    cli.ExpectEachRanOnce(kPoints);
    EXPECT_EQ(cli.service.Jobs().size(), static_cast<size_t>(kPoints));
    return hits;
  });
}

}  // namespace
}  // namespace ridgeline::testing
