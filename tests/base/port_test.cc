#include "base/port.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace ridgeline {
namespace {

int Bind(int64_t port, bool reuse) {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  const int on = 1;
  if (reuse) ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return fd;
  ::close(fd);
  return -1;
}

TEST(ReservedPort, IsKeptFromOthersAndLeftToAServer) {
  const ReservedPort port;
  EXPECT_GT(port.number(), 0);
  EXPECT_EQ(Bind(port.number(), false), -1);
  EXPECT_EQ(errno, EADDRINUSE);
  const int server = Bind(port.number(), true);
  ASSERT_GE(server, 0);
  EXPECT_EQ(::listen(server, 1), 0);
  ::close(server);
}

TEST(ReservedPort, TwoAreDifferent) {
  const ReservedPort one;
  const ReservedPort two;
  EXPECT_NE(one.number(), two.number());
}

TEST(ReservedPort, IsFreeAgainAfterwards) {
  int64_t number = 0;
  {
    const ReservedPort port;
    number = port.number();
  }
  const int fd = Bind(number, false);
  EXPECT_GE(fd, 0);
  ::close(fd);
}

}  // namespace
}  // namespace ridgeline
