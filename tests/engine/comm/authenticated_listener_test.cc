// What strangers cannot do at an authenticated listener.
#include "engine/comm/gloo/authenticated_listener.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>

#include <atomic>
#include <optional>

#include "base/clock.h"
#include "tests/engine/comm/strangers.h"

namespace ridgeline::engine {
namespace {

using testing::Stranger;

Terms TestTerms() { return {Secret(), "a test"}; }

// A listener, and a thread that serves it until it ends.
class Served {
 public:
  Served() {
    Socket listener = Listen("127.0.0.1", 0);
    port_ = LocalPort(listener);
    listener_.emplace(std::move(listener), TestTerms(), 1);
    thread_ = std::thread([this] {
      while (!stop_) {
        const Socket socket = listener_->Await([&] {
          refused_ = listener_->refused();
          ++turns_;
          return stop_.load();
        });
        if (socket) ++let_in_;
      }
    });
  }
  ~Served() {
    if (thread_.joinable()) Stop();
  }
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;

  void Stop() {
    stop_ = true;
    thread_.join();
    refused_ = listener_->refused();
  }
  int64_t port() const { return port_; }
  int64_t refused() const { return refused_; }
  int64_t let_in() const { return let_in_; }
  // How often it has looked. If the listener kept a core busy, it would look without a pause.
  int64_t turns() const { return turns_; }

 private:
  int64_t port_ = 0;
  std::optional<AuthenticatedListener> listener_;
  std::atomic<bool> stop_ = false;
  std::atomic<int64_t> let_in_ = 0;
  std::atomic<int64_t> refused_ = 0;
  std::atomic<int64_t> turns_ = 0;
  std::thread thread_;
};

bool Enter(int64_t port) {
  for (int i = 0; i < 2000; ++i) {
    const auto socket = TryConnect("127.0.0.1", port);
    if (socket && Prove(*socket, TestTerms()) == Proof::kTaken) return true;
    SystemClock().SleepNs(10'000'000);
  }
  return false;
}

TEST(AuthenticatedListener, LetsInWhoKnowsTheSecretAndCountsWhoDoesNot) {
  Served served;
  Stranger stranger(testing::Overhear(TestTerms()));
  for (int way = 0; way < 3 * Stranger::kWays; ++way) ASSERT_TRUE(stranger.Visit(served.port(), way));
  ASSERT_TRUE(Enter(served.port()));
  // Strangers that send nothing, or send slowly, are still waited for.
  constexpr int kRefused = 3 * (Stranger::kWays - 2);
  for (int i = 0; i < 1000 && (served.let_in() == 0 || served.refused() < kRefused); ++i) {
    SystemClock().SleepNs(10'000'000);
  }
  EXPECT_EQ(served.let_in(), 1);
  EXPECT_EQ(served.refused(), kRefused);
}

TEST(AuthenticatedListener, HoldsSoManyWhoSayNothingAndLetsTheOldestGo) {
  Served served;
  std::vector<Socket> silent;
  constexpr size_t kTooMany = 10;
  // The listener expects one more.
  for (size_t i = 0; i < AuthenticatedListener::kMostStrangers + 1 + kTooMany; ++i) {
    silent.push_back(*TryConnect("127.0.0.1", served.port()));
  }
  for (size_t i = 0; i < kTooMany; ++i) EXPECT_TRUE(testing::IsClosedByOther(silent[i])) << i;
  pollfd fd{silent[kTooMany].fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&fd, 1, 0), 0) << "the listener holds this connection";
  ASSERT_TRUE(Enter(served.port())) << "a rank with a proof does not wait for them";
}

TEST(AuthenticatedListener, WaitsOnlySoLongForWhoSaysItSlowly) {
  Served served;
  const auto slow = TryConnect("127.0.0.1", served.port());
  const int64_t began_ns = SystemClock().MonotonicNs();
  for (const char c : std::string_view("ridgeline")) {
    testing::Say(*slow, std::string(1, c));
    SystemClock().SleepNs(100'000'000);
  }
  EXPECT_TRUE(testing::IsClosedByOther(*slow));
  EXPECT_GE(SystemClock().MonotonicNs() - began_ns, kHandshakeNs / 2) << "it closed too early";
  served.Stop();
  EXPECT_EQ(served.refused(), 1);
}

TEST(AuthenticatedListener, AFloodKeepsNoCoreBusyAndNobodyOut) {
  Served served;
  std::atomic<bool> stop = false;
  std::atomic<int64_t> visits = 0;
  std::vector<std::thread> strangers;
  for (int i = 0; i < 4; ++i) {
    strangers.emplace_back([&, i] {
      Stranger stranger(testing::Overhear(TestTerms()));
      for (int way = i; !stop; ++way) {
        if (stranger.Visit(served.port(), way)) ++visits;
      }
    });
  }
  const int64_t began_ns = SystemClock().MonotonicNs();
  const int64_t end_ns = began_ns + 2'000'000'000;
  int entered = 0;
  while (SystemClock().MonotonicNs() < end_ns) entered += Enter(served.port()) ? 1 : 0;
  const int64_t pauses = (SystemClock().MonotonicNs() - began_ns) / AuthenticatedListener::kPauseNs;
  const int64_t turns = served.turns();
  stop = true;
  for (std::thread& stranger : strangers) stranger.join();
  served.Stop();
  EXPECT_LT(turns, 4 * pauses);
  EXPECT_GT(entered, 0);
  EXPECT_GT(served.let_in(), 0);
  EXPECT_LE(served.let_in(), entered);
  EXPECT_GT(visits, 100);
  EXPECT_GT(served.refused(), visits / 4);
}

TEST(AuthenticatedListener, DoesNotSpinWhereDescriptorsHaveRunOut) {
  Served served;
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  std::vector<Socket> waiting;
  waiting.push_back(*TryConnect("127.0.0.1", served.port()));
  SystemClock().SleepNs(50'000'000);
  // Connected but impossible to accept: the limit allows no further open file.
  rlimit none = before;
  const int lowest_free = ::dup(0);
  ::close(lowest_free);
  none.rlim_cur = static_cast<rlim_t>(lowest_free) + 1;
  const int ours = ::socket(AF_INET, SOCK_STREAM, 0);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  sockaddr_in there{};
  there.sin_family = AF_INET;
  there.sin_port = htons(static_cast<uint16_t>(served.port()));
  there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(ours, reinterpret_cast<sockaddr*>(&there), sizeof there), 0);
  const int64_t turns = served.turns();
  const int64_t began_ns = SystemClock().MonotonicNs();
  SystemClock().SleepNs(500'000'000);
  const int64_t pauses = (SystemClock().MonotonicNs() - began_ns) / AuthenticatedListener::kPauseNs;
  served.Stop();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ::close(ours);
  // Two turns for each pause: one that detects the limit, one at its end.
  EXPECT_LT(served.turns() - turns, 3 * pauses + 10);
}

}  // namespace
}  // namespace ridgeline::engine
