#include "engine/comm/gloo/wire.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include <fmt/format.h>

#include "base/error.h"

namespace ridgeline::engine {
namespace {

constexpr size_t kHeaderBytes = sizeof(uint32_t) + 1;
constexpr size_t kMaxBodyBytes = size_t{1} << 28;
constexpr int kSendTimeoutS = 10;
constexpr int kBacklog = 512;  // the kernel keeps some bytes of each until it is taken

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Addresses Resolve(const char* address, int64_t port, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int code = ::getaddrinfo(address, std::to_string(port).c_str(), &hints, &found);
  if (code != 0) {
    throw Error(
        ErrorKind::kInfrastructure,
        fmt::format("cannot find the address of '{}': {}", address == nullptr ? "" : address, ::gai_strerror(code)),
        "MASTER_ADDR must name the machine that rank 0 runs on");
  }
  return {found, &::freeaddrinfo};
}

void SetOption(int fd, int level, int option) {
  const int on = 1;
  ::setsockopt(fd, level, option, &on, sizeof on);
}

// Small messages are sent at once, and a peer that does not answer or read cannot block this process forever.
void SetUp(int fd) {
  SetOption(fd, IPPROTO_TCP, TCP_NODELAY);
  const timeval timeout{kSendTimeoutS, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
}

std::string NumericAddress(const sockaddr* address, socklen_t length) {
  std::array<char, NI_MAXHOST> text{};
  const int code = ::getnameinfo(address, length, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  return code == 0 ? text.data() : "";
}

// Returns the address of one end of a connection. `ask`: getsockname or getpeername.
std::string AddressOf(const Socket& socket, int (*ask)(int, sockaddr*, socklen_t*)) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  return ask(socket.fd(), any, &length) == 0 ? NumericAddress(any, length) : "";
}

// Returns nothing if the address is none of this machine's.
Socket ListenAt(const addrinfo& at, int64_t port) {
  Socket socket(::socket(at.ai_family, at.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, at.ai_protocol));
  // The process that chose the port may still hold it for us, or the kernel may remember it from a run that just ended.
  SetOption(socket.fd(), SOL_SOCKET, SO_REUSEADDR);
  if (socket && ::bind(socket.fd(), at.ai_addr, at.ai_addrlen) == 0 && ::listen(socket.fd(), kBacklog) == 0) {
    return socket;
  }
  if (errno == EADDRNOTAVAIL || errno == EAFNOSUPPORT) return Socket();
  ThrowErrno(fmt::format("a rank cannot listen at {}, port {}", NumericAddress(at.ai_addr, at.ai_addrlen), port),
             "MASTER_PORT must be a free port of the machine rank 0 runs on");
}

}  // namespace

Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Socket::~Socket() {
  if (fd_ >= 0) ::close(fd_);
}

Socket Listen(const std::string& address, int64_t port) {
  const bool here_only = address == "localhost" || IsLoopback(address);
  const Addresses found = Resolve(address.c_str(), port, 0);
  for (const addrinfo* at = found.get(); at != nullptr; at = at->ai_next) {
    if (IsLoopback(NumericAddress(at->ai_addr, at->ai_addrlen)) != here_only) continue;
    if (Socket socket = ListenAt(*at, port)) return socket;
  }
  const Addresses any = Resolve(nullptr, port, AI_PASSIVE);
  Socket socket = ListenAt(*any, port);
  if (!socket) ThrowErrno(fmt::format("a rank cannot listen on port {}", port));
  return socket;
}

Socket Accept(const Socket& listener) {
  Socket socket(::accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC));
  if (socket) SetUp(socket.fd());
  return socket;
}

std::optional<Socket> TryConnect(const std::string& address, int64_t port) {
  const Addresses found = Resolve(address.c_str(), port, 0);
  for (const addrinfo* at = found.get(); at != nullptr; at = at->ai_next) {
    Socket socket(::socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol));
    SetUp(socket.fd());
    if (socket && ::connect(socket.fd(), at->ai_addr, at->ai_addrlen) == 0) return socket;
  }
  return std::nullopt;
}

std::string LocalAddress(const Socket& socket) { return AddressOf(socket, ::getsockname); }

std::string PeerAddress(const Socket& socket) { return AddressOf(socket, ::getpeername); }

int64_t LocalPort(const Socket& socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (::getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&address), &length) != 0) return 0;
  // Both address families have the port at the same place.
  return ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

bool IsLoopback(std::string_view address) {
  return address.starts_with("127.") || address == "::1" || address.starts_with("::ffff:127.");
}

bool Send(const Socket& socket, MessageKind kind, std::string_view body) {
  std::string bytes(kHeaderBytes, '\0');
  const auto length = static_cast<uint32_t>(body.size());
  std::memcpy(bytes.data(), &length, sizeof length);
  bytes[sizeof length] = static_cast<char>(kind);
  bytes += body;
  for (size_t sent = 0; sent < bytes.size();) {
    const ssize_t n = ::send(socket.fd(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    sent += static_cast<size_t>(n);
  }
  return true;
}

bool MessageReader::Read(const Socket& socket) {
  std::array<char, 1 << 14> buffer;
  for (;;) {
    const ssize_t n = ::recv(socket.fd(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return true;
    if (n <= 0) return false;
    bytes_.append(buffer.data(), static_cast<size_t>(n));
    uint32_t length = 0;
    if (bytes_.size() >= sizeof length) std::memcpy(&length, bytes_.data(), sizeof length);
    if (length > kMaxBodyBytes) return false;
  }
}

std::optional<Message> MessageReader::Next() {
  uint32_t length = 0;
  if (bytes_.size() < kHeaderBytes) return std::nullopt;
  std::memcpy(&length, bytes_.data(), sizeof length);
  if (bytes_.size() < kHeaderBytes + length) return std::nullopt;
  Message message{static_cast<MessageKind>(bytes_[sizeof length]), bytes_.substr(kHeaderBytes, length)};
  bytes_.erase(0, kHeaderBytes + length);
  return message;
}

void AppendNumber(int64_t value, std::string& body) {
  std::array<char, sizeof value> bytes;
  std::memcpy(bytes.data(), &value, sizeof value);
  body.append(bytes.data(), bytes.size());
}

int64_t TakeNumber(std::string_view& body) {
  int64_t value = 0;
  if (body.size() < sizeof value) return 0;
  std::memcpy(&value, body.data(), sizeof value);
  body.remove_prefix(sizeof value);
  return value;
}

void AppendText(std::string_view text, std::string& body) {
  AppendNumber(static_cast<int64_t>(text.size()), body);
  body += text;
}

std::string TakeText(std::string_view& body) {
  const auto size = static_cast<size_t>(TakeNumber(body));
  if (size > body.size()) return {};
  std::string text(body.substr(0, size));
  body.remove_prefix(size);
  return text;
}

}  // namespace ridgeline::engine
