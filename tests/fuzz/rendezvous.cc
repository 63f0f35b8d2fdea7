// Messages between a rank and rank 0's meeting place come from a socket in parts of any size. They arrive as they were
// sent, or the connection is closed. The parts of a body are never longer than the body.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "engine/comm/gloo/meeting_place.h"
#include "engine/comm/gloo/wire.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ridgeline;  // NOLINT(google-build-using-namespace): a program of one function
  if (size == 0) return 0;
  const size_t part = size_t{*data} * 16 + 1;  // the bytes that come at once
  std::string_view rest = fuzz::TextOf(data + 1, size - 1);
  std::array<int, 2> ends{};
  fuzz::Require(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0, "a pair of sockets can be made");
  const engine::Socket from(ends[0]);
  const engine::Socket to(ends[1]);
  engine::MessageReader reader;
  size_t bodies = 0;
  while (!rest.empty()) {
    const std::string_view now = rest.substr(0, part);
    rest.remove_prefix(now.size());
    fuzz::Require(::send(from.fd(), now.data(), now.size(), 0) == static_cast<ssize_t>(now.size()), "it is sent");
    if (!reader.Read(to)) break;
    while (const auto message = reader.Next()) {
      bodies += message->body.size();
      std::string_view body = message->body;
      engine::TakeNumber(body);
      engine::TakeNumber(body);
      fuzz::Require(engine::TakeText(body).size() + body.size() <= message->body.size(), "a text is inside its body");
      engine::DecodeError(message->body);
    }
  }
  fuzz::Require(bodies <= size, "messages hold what was sent");
  return 0;
}
