// Messages between a rank and rank 0's meeting place: a stream socket that carries whole messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace ridgeline {

enum class MessageKind : uint8_t {
  kHello,         // from a rank: who it is
  kBeat,          // both ways: I am alive; from a rank also how many collectives it has entered
  kExchange,      // from a rank: its text; to a rank: everybody's
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

// Listens on `port` (0: any free one) at the address of this machine by which others reach it under the name `address`:
// of the loopback interface only where it is written so. On every interface where this machine has no such address: a
// network translates it, or this machine takes its own name for loopback. Throws Error(kInfrastructure).
Socket Listen(const std::string& address, int64_t port);

// Takes one waiting connection; nothing, and errno, where there is none. Does not block.
Socket Accept(const Socket& listener);

// Nothing where nobody listens there yet. Throws Error(kInfrastructure) for an address that cannot be resolved.
std::optional<Socket> TryConnect(const std::string& address, int64_t port);

// This end's and the other end's numeric address.
std::string LocalAddress(const Socket& socket);
std::string PeerAddress(const Socket& socket);
int64_t LocalPort(const Socket& socket);
bool IsLoopback(std::string_view address);

// Blocks until it is sent; false where the other end is gone or does not read.
bool Send(const Socket& socket, MessageKind kind, std::string_view body);

// Takes messages out of a stream.
class MessageReader {
 public:
  // Reads what is there without blocking. False where the other end has closed or what it sends is no message.
  bool Read(const Socket& socket);
  std::optional<Message> Next();

 private:
  std::string bytes_;
};

// Numbers and lists of texts in a message's body.
void AppendNumber(int64_t value, std::string& body);
int64_t TakeNumber(std::string_view& body);  // 0 where there is none
void AppendText(std::string_view text, std::string& body);
std::string TakeText(std::string_view& body);  // empty where there is none

}  // namespace ridgeline
