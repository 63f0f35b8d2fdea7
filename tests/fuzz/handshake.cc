// A stranger may send any bytes to the port of a rank, in parts of any size. Without the job's secret nobody gets in,
// and the rank answers with no more than a handshake.
#include "engine/comm/gloo/handshake.h"

#include <sys/socket.h>

#include <array>

#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ridgeline;  // NOLINT(google-build-using-namespace): a program of one function
  if (size == 0) return 0;
  const size_t part = size_t{*data} + 1;  // the bytes that come at once
  std::string_view rest = fuzz::TextOf(data + 1, size - 1);
  std::array<int, 2> ends{};
  fuzz::Require(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0, "a pair of sockets can be made");
  const engine::Socket stranger(ends[0]);
  const engine::Socket listener(ends[1]);
  const engine::Terms terms{engine::Secret(), "meeting"};
  engine::Answer answer;
  auto state = engine::Answer::State::kGoesOn;
  while (!rest.empty() && state == engine::Answer::State::kGoesOn) {
    const std::string_view now = rest.substr(0, part);
    rest.remove_prefix(now.size());
    ::send(stranger.fd(), now.data(), now.size(), MSG_NOSIGNAL);
    state = answer.GoOn(listener, terms);
  }
  fuzz::Require(state != engine::Answer::State::kProved, "nobody guesses a proof");
  std::array<char, 4096> heard{};
  const ssize_t answered = ::recv(stranger.fd(), heard.data(), heard.size(), MSG_DONTWAIT);
  fuzz::Require(answered <= 64, "the answer is at most one nonce and one proof");
  return 0;
}
