#include "engine/comm/gloo/handshake.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "base/clock.h"

namespace ridgeline::engine {
namespace {

constexpr std::string_view kGreeting = "ridgeline ranks\n";
constexpr size_t kNonceBytes = 32;

std::string NewNonce() {
  std::string nonce(kNonceBytes, '\0');
  FillRandomly(nonce.data(), nonce.size());
  return nonce;
}

// `end` is the prover: "connected" or "listens". No purpose contains a zero byte, and all nonces have one size, so no
// two meanings give the same text.
Secret::Mac ProofOf(const Terms& terms, std::string_view end, std::string_view nonce,
                    std::string_view listeners_nonce) {
  std::string text(end);
  text += '\0';
  text += terms.purpose;
  text += '\0';
  text += nonce;
  text += listeners_nonce;
  return terms.secret.MacOf(text);
}

Secret::Mac ToMac(std::string_view bytes) {
  Secret::Mac mac;
  std::copy_n(bytes.begin(), mac.size(), mac.begin());
  return mac;
}

enum class Came { kAll, kNotYet, kNoMore };

// Reads until `heard` has `wanted` bytes, and none beyond them, without blocking.
Came Receive(const Socket& socket, size_t wanted, std::string& heard) {
  std::array<char, 256> buffer;
  while (heard.size() < wanted) {
    const ssize_t n = ::recv(socket.fd(), buffer.data(), std::min(buffer.size(), wanted - heard.size()), MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Came::kNotYet;
    if (n <= 0) return Came::kNoMore;
    heard.append(buffer.data(), static_cast<size_t>(n));
  }
  return Came::kAll;
}

// A handshake's messages are the first on a connection, and fit into its buffer.
bool SendAtOnce(const Socket& socket, std::string_view bytes) {
  return ::send(socket.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT) ==
         static_cast<ssize_t>(bytes.size());
}

std::string_view View(const Secret::Mac& mac) { return {mac.data(), mac.size()}; }

}  // namespace

Answer::State Answer::GoOn(const Socket& socket, const Terms& terms) {
  if (!answered_) {
    const Came came = Receive(socket, kGreeting.size() + kNonceBytes, heard_);
    if (!heard_.starts_with(kGreeting.substr(0, heard_.size())) || came == Came::kNoMore) return State::kRefused;
    if (came == Came::kNotYet) return State::kGoesOn;
    const std::string nonce = heard_.substr(kGreeting.size());
    const std::string own = NewNonce();
    expected_ = ProofOf(terms, "connected", nonce, own);
    if (!SendAtOnce(socket, own + std::string(View(ProofOf(terms, "listens", nonce, own))))) return State::kRefused;
    heard_.clear();
    answered_ = true;
  }
  const Came came = Receive(socket, Secret::kMacBytes, heard_);
  if (came == Came::kNotYet) return State::kGoesOn;
  return came == Came::kAll && AreEqual(ToMac(heard_), expected_) ? State::kProved : State::kRefused;
}

Proof Prove(const Socket& socket, const Terms& terms) {
  const std::string nonce = NewNonce();
  if (!SendAtOnce(socket, std::string(kGreeting) + nonce)) return Proof::kNoAnswer;
  const SystemClock clock;
  const int64_t end_ns = clock.MonotonicNs() + kHandshakeNs;
  std::string heard;
  for (Came came = Came::kNotYet; came != Came::kAll;) {
    const int64_t left_ns = end_ns - clock.MonotonicNs();
    if (came == Came::kNoMore || left_ns <= 0) return Proof::kNoAnswer;
    pollfd fd{socket.fd(), POLLIN, 0};
    const timespec left{left_ns / 1'000'000'000, left_ns % 1'000'000'000};
    ::ppoll(&fd, 1, &left, nullptr);
    came = Receive(socket, kNonceBytes + Secret::kMacBytes, heard);
  }
  const std::string_view others_nonce = std::string_view(heard).substr(0, kNonceBytes);
  if (!AreEqual(ToMac(std::string_view(heard).substr(kNonceBytes)), ProofOf(terms, "listens", nonce, others_nonce))) {
    return Proof::kWrong;
  }
  return SendAtOnce(socket, View(ProofOf(terms, "connected", nonce, others_nonce))) ? Proof::kTaken : Proof::kNoAnswer;
}

}  // namespace ridgeline::engine
