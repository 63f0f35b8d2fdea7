// Ten thousand strangers connect to a run of several ranks, and the run's result does not change.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/clock.h"
#include "tests/engine/comm/strangers.h"
#include "tests/engine/train/rank_processes.h"
#include "tests/engine/train/specs.h"

namespace ridgeline::engine {
namespace {

using testing::RankProcesses;
using testing::Stranger;

constexpr int64_t kConnections = 10'000;

RunSpec SpecOfThreeRanks() {
  Json values = TinyModel("llama");
  values.update({{"precision", "bf16"}, {"batch_size", 1}, {"steps", 20}, {"learning_rate", 1e-3}, {"ranks", 3}});
  values["shard"] = "full";
  return SpecFrom(values);
}

// The CPU time that a process has used so far.
int64_t CpuNs(pid_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(in, text);
  std::istringstream fields(text.substr(text.rfind(')') + 2));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  int64_t user = 0;
  int64_t system = 0;
  fields >> user >> system;
  return (user + system) * (1'000'000'000 / ::sysconf(_SC_CLK_TCK));
}

// A process's peak memory so far, and its number of open files.
int64_t PeakBytes(pid_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("VmHWM:")) return std::stoll(line.substr(6)) * 1024;
  }
  return 0;
}
int64_t OpenFiles(pid_t pid) {
  const std::filesystem::directory_iterator files("/proc/" + std::to_string(pid) + "/fd");
  return std::distance(begin(files), end(files));
}

// Visits a port from several threads until it is destroyed.
class Crowd {
 public:
  Crowd(int64_t port, const Terms& terms) {
    const testing::Overheard heard = testing::Overhear(terms);
    for (int i = 0; i < 6; ++i) {
      threads_.emplace_back([this, port, heard, i] {
        Stranger stranger(heard);
        for (int way = i; !stop_; ++way) {
          if (stranger.Visit(port, way)) {
            ++visits_;
          } else {
            ::usleep(1000);
          }
        }
      });
    }
  }
  ~Crowd() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;
  int64_t visits() const { return visits_; }

 private:
  std::atomic<bool> stop_ = false;
  std::atomic<int64_t> visits_ = 0;
  std::vector<std::thread> threads_;
};

RunResult ResultOf(RankProcesses& ranks) {
  const auto ends = ranks.Wait();
  for (size_t rank = 0; rank < ends.size(); ++rank) EXPECT_TRUE(ends[rank].ok()) << ranks.Log(rank);
  return ranks.HasResult() ? ranks.Result() : RunResult{};
}

TEST(Strangers, ChangeNothingOfARunBitByBit) {
  const RunSpec spec = SpecOfThreeRanks();
  RankProcesses alone;
  alone.StartAll(spec);
  const RunResult want = ResultOf(alone);
  ASSERT_EQ(want.status, RunStatus::kOk) << want.message;
  EXPECT_FALSE(want.evidence.contains("refused_connections"));

  const TempDir dir;
  WritePrivateFile(dir / "secret", std::string(64, 's'));
  RankProcesses visited({{"RIDGELINE_SECRET_FILE", dir / "secret"}});
  visited.Start(spec, 3);
  const pid_t first = visited.child(0).pid();
  SystemClock clock;
  for (int i = 0; i < 2000 && !TryConnect("127.0.0.1", visited.port()); ++i) clock.SleepNs(10'000'000);

  // The first rank waits for the others with its port open.
  const int64_t cpu_ns = CpuNs(first);
  [[maybe_unused]] const int64_t peak_bytes = PeakBytes(first);
  const int64_t files = OpenFiles(first);
  const int64_t began_ns = clock.MonotonicNs();
  RunResult got;
  {
    const Crowd crowd(visited.port(), {Secret::Read(dir / "secret").value(), "meeting"});
    while (crowd.visits() < kConnections && clock.MonotonicNs() - began_ns < 200'000'000'000) {
      clock.SleepNs(10'000'000);
      EXPECT_LT(OpenFiles(first), files + static_cast<int64_t>(AuthenticatedListener::kMostStrangers) + 10);
    }
    EXPECT_GE(crowd.visits(), kConnections);
    const int64_t spent_ns = CpuNs(first) - cpu_ns;
    EXPECT_LT(static_cast<double>(spent_ns), 0.5 * static_cast<double>(clock.MonotonicNs() - began_ns));
#ifndef RIDGELINE_SANITIZED  // sanitizers keep freed memory for a while
    EXPECT_LT(PeakBytes(first), peak_bytes + (2 << 20));
#endif
    for (int rank = 1; rank < 3; ++rank) visited.Start(spec, 3);
    got = ResultOf(visited);
  }
  EXPECT_EQ(got.status, RunStatus::kOk) << got.message;
  EXPECT_EQ(got.loss, want.loss);
  EXPECT_EQ(got.grad_norm, want.grad_norm);
  EXPECT_EQ(got.memory.planned_peak_bytes, want.memory.planned_peak_bytes);
#ifndef RIDGELINE_SANITIZED
  EXPECT_NEAR(static_cast<double>(got.memory.rss_peak_bytes), static_cast<double>(want.memory.rss_peak_bytes), 4 << 20);
#endif
  ASSERT_TRUE(got.evidence.contains("refused_connections"));
  EXPECT_GT(std::stoll(got.evidence.at("refused_connections")), kConnections / 2);
}

}  // namespace
}  // namespace ridgeline::engine
