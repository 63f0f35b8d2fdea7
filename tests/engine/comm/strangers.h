// What programs that do not belong to the run do to a rank's port. All of it is on the loopback interface.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <deque>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "engine/comm/gloo/authenticated_listener.h"
#include "engine/comm/gloo/handshake.h"
#include "engine/comm/gloo/wire.h"

namespace ridgeline::testing {

// The sizes of a handshake's three parts (handshake.cc).
inline constexpr size_t kCallBytes = 48;
inline constexpr size_t kAnswerBytes = 64;
inline constexpr size_t kProofBytes = 32;

inline std::string RandomBytes(size_t count) {
  std::string bytes(count, '\0');
  engine::FillRandomly(bytes.data(), count);
  return bytes;
}

// Sends only what the kernel takes at once.
inline void Say(const engine::Socket& socket, std::string_view bytes) {
  ::send(socket.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

// The next `count` bytes, or fewer if the other end closes or sends nothing for 20 seconds.
inline std::string Hear(const engine::Socket& socket, size_t count) {
  std::string heard;
  while (heard.size() < count) {
    std::array<char, 4096> buffer;
    pollfd fd{socket.fd(), POLLIN, 0};
    if (::poll(&fd, 1, 20'000) <= 0) break;
    const ssize_t n = ::recv(socket.fd(), buffer.data(), std::min(buffer.size(), count - heard.size()), 0);
    if (n <= 0) break;
    heard.append(buffer.data(), static_cast<size_t>(n));
  }
  return heard;
}
inline bool IsClosedByOther(const engine::Socket& socket) {
  char byte = 0;
  pollfd fd{socket.fd(), POLLIN, 0};
  return ::poll(&fd, 1, 20'000) == 1 && ::recv(socket.fd(), &byte, 1, MSG_DONTWAIT) <= 0;
}

// A successful handshake, as somebody between the two heard it.
struct Overheard {
  std::string call;
  std::string answer;
  std::string proof;
};
inline Overheard Overhear(const engine::Terms& terms) {
  engine::Socket listener = engine::Listen("127.0.0.1", 0);
  const int64_t port = engine::LocalPort(listener);
  const engine::Socket between = engine::Listen("127.0.0.1", 0);
  engine::AuthenticatedListener inside(std::move(listener), terms, 1);
  std::thread answers([&] { EXPECT_TRUE(inside.Await([] { return false; })); });
  std::thread calls([&] {
    const auto socket = engine::TryConnect("127.0.0.1", engine::LocalPort(between));
    EXPECT_EQ(engine::Prove(*socket, terms), engine::Proof::kTaken);
  });
  pollfd fd{between.fd(), POLLIN, 0};
  ::poll(&fd, 1, -1);
  const engine::Socket caller = engine::Accept(between);
  const auto there = engine::TryConnect("127.0.0.1", port);
  Overheard heard;
  Say(*there, heard.call = Hear(caller, kCallBytes));
  Say(caller, heard.answer = Hear(*there, kAnswerBytes));
  Say(*there, heard.proof = Hear(caller, kProofBytes));
  answers.join();
  calls.join();
  return heard;
}

// Visits a port in different ways, with a new connection each time.
class Stranger {
 public:
  // `heard`: the handshake that it may replay.
  explicit Stranger(Overheard heard) : heard_(std::move(heard)) {}

  static constexpr int kWays = 9;

  // False if nobody listens.
  bool Visit(int64_t port, int way) {
    auto socket = engine::TryConnect("127.0.0.1", port);
    if (!socket) return false;
    switch (way % kWays) {
      case 0:
        Say(*socket, RandomBytes(4096));
        break;
      case 1:  // begins correctly, and then does not end
        Say(*socket, heard_.call);
        for (int i = 0; i < 64; ++i) Say(*socket, std::string(1 << 14, 'x'));
        break;
      case 2:  // sends nothing
        Hold(*std::move(socket));
        break;
      case 3:  // sends slowly
        for (int i = 0; i < 5; ++i) Say(*socket, heard_.call.substr(static_cast<size_t>(i), 1));
        Hold(*std::move(socket));
        break;
      case 4: {  // a rank of another run that asks for no proof
        std::string hello;
        engine::AppendNumber(1, hello);
        engine::AppendNumber(7, hello);
        engine::AppendText("somewhere", hello);
        engine::Send(*socket, engine::MessageKind::kHello, hello);
        Hold(*std::move(socket));
        break;
      }
      case 5:  // a message that claims to be long
        Say(*socket, std::string("\x00\x00\x00\x10\x02", 5) + std::string(1 << 14, 'x'));
        Hold(*std::move(socket));
        break;
      case 6: {  // a wrong secret
        Say(*socket, heard_.call);
        Hear(*socket, kAnswerBytes);
        Say(*socket, RandomBytes(kProofBytes));
        break;
      }
      case 7:  // the right proof, from an earlier handshake
        Say(*socket, heard_.call);
        Hear(*socket, kAnswerBytes);
        Say(*socket, heard_.proof);
        break;
      default:
        break;  // closes without sending
    }
    return true;
  }

 private:
  void Hold(engine::Socket socket) {
    held_.push_back(std::move(socket));
    if (held_.size() > 40) held_.pop_front();
  }

  Overheard heard_;
  std::deque<engine::Socket> held_;
};

}  // namespace ridgeline::testing
