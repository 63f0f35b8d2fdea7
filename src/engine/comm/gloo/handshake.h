// How the two ends of a connection between ranks prove to each other that they know the job's secret, without sending
// it:
//
//   the end that connected   a greeting and a nonce
//   the end that listens     a nonce of its own, and its proof
//   the end that connected   its proof
//
// A proof is an HMAC, keyed by the secret, over the prover's end, the purpose of the connection, and both nonces. Each
// end draws a fresh nonce, so an overheard proof proves nothing at another time, at the other end, or elsewhere.
//
// The handshake authenticates the two ends when a connection begins. Later traffic is neither encrypted nor sealed:
// whoever can read or change packets between two nodes can read or change it.
#pragma once

#include <cstdint>
#include <string>

#include "engine/comm/gloo/secret.h"
#include "engine/comm/gloo/wire.h"

namespace ridgeline::engine {

// What both ends must agree on.
struct Terms {
  Secret secret;
  std::string purpose;  // "data from rank 3 to rank 4"
};

// How long an end may take for its part, in nanoseconds.
inline constexpr int64_t kHandshakeNs = 5'000'000'000;

// The listening end of one connection. Holds only the handshake's bytes, and never blocks.
class Answer {
 public:
  enum class State { kGoesOn, kProved, kRefused };

  // Takes the bytes that have come, and answers them.
  State GoOn(const Socket& socket, const Terms& terms);

 private:
  std::string heard_;
  bool answered_ = false;
  Secret::Mac expected_{};
};

// The end that connected. kNoAnswer: the other end was silent, or closed the connection.
enum class Proof { kTaken, kWrong, kNoAnswer };
Proof Prove(const Socket& socket, const Terms& terms);

}  // namespace ridgeline::engine
