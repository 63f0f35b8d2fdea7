// The thread that asks Gloo to send and to receive, and the result if Gloo cannot.
#include "engine/comm/gloo/gloo_thread.h"

#include <gloo/transport/tcp/attr.h>
#include <gloo/transport/tcp/device.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

namespace ridgeline::engine {
namespace {

using ::testing::ElementsAre;

// Records the requests and their threads. Read it only after Settle.
class Asked final : public ::gloo::transport::UnboundBuffer {
 public:
  Asked() : UnboundBuffer(nullptr, 0) {}
  bool waitRecv(int*, std::chrono::milliseconds) override { return true; }
  bool waitSend(int*, std::chrono::milliseconds) override { return true; }
  void abortWaitRecv() override {}
  void abortWaitSend() override {}
  void send(int to, uint64_t slot, size_t offset, size_t bytes) override { Keep("to", to, slot, offset, bytes); }
  void recv(int from, uint64_t slot, size_t offset, size_t bytes) override { Keep("from", from, slot, offset, bytes); }
  void recv(std::vector<int>, uint64_t, size_t, size_t) override { FAIL() << "from anybody"; }

  std::vector<std::string> calls;
  std::vector<std::thread::id> threads;
  uint64_t broken_from = 1000;  // from this slot on

 private:
  void Keep(const char* way, int peer, uint64_t slot, size_t offset, size_t bytes) {
    if (slot >= broken_from) throw std::runtime_error(fmt::format("slot {} is broken", slot));
    calls.push_back(fmt::format("{} {}: slot {}, {} + {}", way, peer, slot, offset, bytes));
    threads.push_back(std::this_thread::get_id());
  }
};

class GlooThreads : public ::testing::Test {
 protected:
  std::vector<std::string> failures_;
  GlooThread thread_{std::dynamic_pointer_cast<::gloo::transport::tcp::Device>(
                         ::gloo::transport::tcp::CreateDevice(::gloo::transport::tcp::attr("127.0.0.1"))),
                     [this](const std::string& why) { failures_.push_back(why); }};
  Asked buffer_;
};

TEST_F(GlooThreads, BeginAllInTheirOrderOnOneThreadOfItsOwn) {
  thread_.Receive({&buffer_, 3, 7, 64, 16});
  thread_.Send({&buffer_, 1, 8, 0, 32});
  thread_.Settle();
  EXPECT_THAT(buffer_.calls, ElementsAre("from 3: slot 7, 64 + 16", "to 1: slot 8, 0 + 32"));
  for (int64_t slot = 9; slot < 500; ++slot) thread_.Send({&buffer_, 1, slot, 0, slot});
  thread_.Settle();
  ASSERT_EQ(buffer_.calls.size(), 493U);
  EXPECT_EQ(buffer_.calls.back(), "to 1: slot 499, 0 + 499");
  for (const std::thread::id thread : buffer_.threads) {
    EXPECT_EQ(thread, buffer_.threads.front());
    EXPECT_NE(thread, std::this_thread::get_id());
  }
}

TEST_F(GlooThreads, TellOnceWhatTheyCannotBeginAndBeginNothingAfterIt) {
  buffer_.broken_from = 8;
  for (int64_t slot = 7; slot < 12; ++slot) thread_.Send({&buffer_, 1, slot, 0, 1});
  thread_.Settle();
  thread_.Receive({&buffer_, 1, 2, 0, 1});
  thread_.Settle();
  EXPECT_THAT(buffer_.calls, ElementsAre("to 1: slot 7, 0 + 1"));
  EXPECT_THAT(failures_, ElementsAre("slot 8 is broken"));
}

}  // namespace
}  // namespace ridgeline::engine
