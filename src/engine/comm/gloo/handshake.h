// How the two ends of a connection between ranks prove to each other that they know the job's secret, without saying
// it:
//
//   who connected   a greeting and a nonce
//   who listens     a nonce of its own, and its proof
//   who connected   its proof
//
// A proof is an HMAC by the secret over which end it is from, what the connection is for, and both nonces. Each end has
// drawn one of these afresh, so what was overheard proves nothing another time, at the other end, or elsewhere.
//
// It proves who is there when a connection begins. What follows is neither encrypted nor sealed: whoever can read or
// change packets on their way between two nodes can read or change that.
#pragma once

#include <cstdint>
#include <string>

#include "engine/comm/gloo/secret.h"
#include "engine/comm/gloo/wire.h"

namespace ridgeline {

// What both ends must agree on.
struct Terms {
  Secret secret;
  std::string purpose;  // "data from rank 3 to rank 4"
};

// How long an end may take for its part.
inline constexpr int64_t kHandshakeNs = 5'000'000'000;

// The end that listens, of one connection. Holds no more than belongs to the handshake, and never blocks.
class Answer {
 public:
  enum class State { kGoesOn, kProved, kRefused };

  // Takes what has come, and answers it.
  State GoOn(const Socket& socket, const Terms& terms);

 private:
  std::string heard_;
  bool answered_ = false;
  Secret::Mac expected_{};
};

// The end that connected. kNoAnswer: the other end was silent, or has closed the connection.
enum class Proof { kTaken, kWrong, kNoAnswer };
Proof Prove(const Socket& socket, const Terms& terms);

}  // namespace ridgeline
