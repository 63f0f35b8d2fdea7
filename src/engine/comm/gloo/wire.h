// Messages between a rank and rank 0's meeting place, over a stream socket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace ridgeline::engine {

enum class MessageKind : uint8_t {
  kHello,         // from a rank: its number, the number of ranks, and its host
  kBeat,          // both ways: the sender is alive; from a rank also how many collectives it has entered
  kExchange,      // from a rank: its text; to a rank: all texts
  kAbandon,       // from a rank: it ends, and why
  kLost,          // to a rank: the run is over, and why
  kLeave,         // from a rank: it is done
  kEveryoneLeft,  // to a rank
};

struct Message {
  MessageKind kind = MessageKind::kBeat;
  std::string body;
};

// An owned descriptor.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();
  int fd() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// Listens on `port` (0: any free one) at this machine's address by which others reach it under the name `address`.
// Listens on the loopback interface only if `address` names it. If this machine has no such address, it listens on
// every interface: a network translates the address, or this machine resolves its own name to loopback. Throws
// Error(kInfrastructure).
Socket Listen(const std::string& address, int64_t port);

// Takes one waiting connection; returns nothing, and sets errno, if there is none. Does not block.
Socket Accept(const Socket& listener);

// Returns nothing if nobody listens there yet. Throws Error(kInfrastructure) if the address cannot be resolved.
std::optional<Socket> TryConnect(const std::string& address, int64_t port);

// This end's and the other end's numeric address.
std::string LocalAddress(const Socket& socket);
std::string PeerAddress(const Socket& socket);
int64_t LocalPort(const Socket& socket);
bool IsLoopback(std::string_view address);

// Blocks until the message is sent. Returns false if the other end is gone or does not read.
bool Send(const Socket& socket, MessageKind kind, std::string_view body);

// Takes messages out of a stream.
class MessageReader {
 public:
  // Reads the available bytes without blocking. Returns false if the other end has closed or sends something else than
  // messages.
  bool Read(const Socket& socket);
  std::optional<Message> Next();

 private:
  std::string bytes_;
};

// Numbers and lists of texts in a message's body.
void AppendNumber(int64_t value, std::string& body);
int64_t TakeNumber(std::string_view& body);  // 0 if it is missing
void AppendText(std::string_view text, std::string& body);
std::string TakeText(std::string_view& body);  // empty if it is missing

}  // namespace ridgeline::engine
