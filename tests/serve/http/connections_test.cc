// The table of connections, turn by turn: which connections wait for others.
#include "serve/connections.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <thread>

#include "serve/connection.h"

namespace ridgeline::serve {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kRequest = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
constexpr std::chrono::milliseconds kTurn{10};

class ConnectionsTest : public ::testing::Test {
 protected:
  ConnectionsTest() {
    sockaddr_in address = Loopback(1);
    EXPECT_EQ(::bind(listening_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listening_.get(), SOMAXCONN), 0);
    socklen_t size = sizeof address;
    ::getsockname(listening_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port_ = address.sin_port;
  }
  ~ConnectionsTest() override {
    for (const int fd : opened_) ::close(fd);
  }

  // Connects from 127.0.0.`host`.
  int Connect(int host, const std::string& says) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    opened_.push_back(fd);
    sockaddr_in from = Loopback(host);
    EXPECT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&from), sizeof from), 0);
    sockaddr_in to = Loopback(1);
    to.sin_port = port_;
    EXPECT_EQ(::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
    EXPECT_TRUE(WriteSocket(fd, says));
    return fd;
  }
  // The received bytes, if the other side has closed; otherwise nothing.
  static std::optional<std::string> Whole(int fd) {
    std::string said;
    char part[4096];
    for (;;) {
      const ssize_t n = ::recv(fd, part, sizeof part, MSG_DONTWAIT);
      if (n < 0) return errno == ECONNRESET ? std::optional(said) : std::nullopt;
      if (n == 0) return said;
      said.append(part, static_cast<size_t>(n));
    }
  }
  // The answer, from turns of the table.
  std::string Answer(int fd) {
    std::string said;
    for (int turn = 0; turn < 2000; ++turn) {
      connections_.Turn(kTurn);
      char part[4096];
      for (;;) {
        const ssize_t n = ::recv(fd, part, sizeof part, MSG_DONTWAIT);
        if (n == 0) return said;
        if (n < 0) break;
        said.append(part, static_cast<size_t>(n));
      }
    }
    ADD_FAILURE() << "no answer in 2,000 turns";
    return said;
  }

  using Kind = Connections::Reply::Kind;
  Connections::Reply reply_{Kind::kNow, Connections::Refusal(200, "here")};
  std::vector<uint64_t> asked_;
  Fd listening_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  Connections connections_{listening_.get(), [this](uint64_t id, int, const std::string& head) {
                             EXPECT_EQ(head, kRequest);
                             asked_.push_back(id);
                             return reply_;
                           }};

 private:
  static sockaddr_in Loopback(int host) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK + static_cast<uint32_t>(host) - 1);
    return address;
  }

  in_port_t port_ = 0;
  std::vector<int> opened_;
};

TEST_F(ConnectionsTest, AnswersBesideAnyNumberOfHalfRequests) {
  std::vector<int> silent;
  for (size_t i = 0; i < 3 * Connections::kMostIdleOfAnAddress; ++i) {
    silent.push_back(Connect(2, "GET / HTTP/1.1\r\nHost: loc"));
  }
  EXPECT_THAT(Answer(Connect(1, kRequest)), HasSubstr("here"));
  EXPECT_THAT(Answer(Connect(2, kRequest)), HasSubstr("here")) << "those of its own address give way, too";
  const auto open = std::count_if(silent.begin(), silent.end(), [](int fd) { return !Whole(fd); });
  EXPECT_LE(open, static_cast<ptrdiff_t>(Connections::kMostIdleOfAnAddress));
  EXPECT_EQ(asked_.size(), 2U);
}

TEST_F(ConnectionsTest, TakesARequestInPartsAndRefusesOneWithoutAnEnd) {
  const int parts = Connect(1, "GET / HTTP/1.1\r\nHost: localhost\r\n\r");
  for (int turn = 0; turn < 3; ++turn) connections_.Turn(kTurn);
  EXPECT_TRUE(asked_.empty());
  EXPECT_TRUE(WriteSocket(parts, "\nand more"));
  EXPECT_THAT(Answer(parts), HasSubstr("here"));
  EXPECT_THAT(Answer(Connect(1, std::string(kMostHeadBytes, 'x'))), StartsWith("HTTP/1.1 431"));
}

TEST_F(ConnectionsTest, AReaderThatTakesNothingKeepsNobodyWaiting) {
  reply_.bytes = std::string(size_t{32} << 20, 'x');
  const int slow = Connect(1, kRequest);
  while (asked_.empty()) connections_.Turn(kTurn);
  EXPECT_TRUE(connections_.IsWriting());
  reply_.bytes = Connections::Refusal(200, "here");
  EXPECT_THAT(Answer(Connect(1, kRequest)), HasSubstr("here"));
  EXPECT_EQ(Answer(slow).size(), size_t{32} << 20) << "all of it, once it is taken";
}

TEST_F(ConnectionsTest, HoldsNoMoreOfAnswersThanItMay) {
  reply_.bytes = std::string(Connections::kMostUnwritten * 2 / 5, 'x');
  std::vector<int> slow;
  for (int i = 0; i < 3; ++i) {
    slow.push_back(Connect(1, kRequest));
    while (asked_.size() < slow.size()) connections_.Turn(kTurn);
  }
  const auto whole =
      std::count_if(slow.begin(), slow.end(), [&](int fd) { return Answer(fd).size() == reply_.bytes.size(); });
  EXPECT_EQ(whole, 2) << "one gives way";
}

TEST_F(ConnectionsTest, TakesAnAnswerOfAnotherThreadAndDropsOneForAClosedConnection) {
  reply_ = {Kind::kLater, ""};
  const int waiting = Connect(1, kRequest);
  while (asked_.empty()) connections_.Turn(kTurn);
  EXPECT_FALSE(Whole(waiting));
  std::thread([&] {
    connections_.Finish(asked_[0] + 1000, "nobody's");
    connections_.Finish(asked_[0], "late");
  }).join();
  EXPECT_EQ(Answer(waiting), "late");
}

}  // namespace
}  // namespace ridgeline::serve
