#include "serve/connections.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "serve/connection.h"

namespace ridgeline::serve {
namespace {

constexpr std::chrono::milliseconds kDrainPatience{500};
constexpr std::chrono::milliseconds kRestWithoutRoom{50};
constexpr size_t kMostDrained = size_t{256} << 10;
constexpr int kAcceptedATurn = 64;

// The key that distinguishes clients: an IPv4 address, or the 64-bit network of an IPv6 address, all of which one
// machine may have.
std::string AddressOfPeer(const sockaddr_storage& peer) {
  constexpr size_t kNetworkBytes = 8;
  if (peer.ss_family == AF_INET) {
    const auto& four = reinterpret_cast<const sockaddr_in&>(peer).sin_addr;
    return {reinterpret_cast<const char*>(&four), sizeof four};
  }
  if (peer.ss_family != AF_INET6) return {};
  const in6_addr& six = reinterpret_cast<const sockaddr_in6&>(peer).sin6_addr;
  const std::string_view bytes(reinterpret_cast<const char*>(&six), sizeof six);
  return std::string(IN6_IS_ADDR_V4MAPPED(&six) ? bytes.substr(12) : bytes.substr(0, kNetworkBytes));
}

bool WouldWait() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

Connections::Connections(int listening, Asked asked)
    : listening_(listening), asked_(std::move(asked)), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (wake_.get() < 0) ThrowErrno("cannot make an eventfd");
}

Connections::~Connections() {
  for (const auto& [id, connection] : table_) ::close(connection.socket);
}

std::string Connections::Refusal(int status, std::string_view words, std::string_view more_headers) {
  return fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nConnection: "
      "close\r\n{}\r\n{}\n",
      status, words, words.size() + 1, more_headers, words);
}

bool Connections::IsWriting() const {
  return std::any_of(table_.begin(), table_.end(),
                     [](const auto& entry) { return entry.second.state == State::kWriting; });
}

void Connections::Finish(uint64_t id, std::string bytes) {
  {
    const std::lock_guard lock(mutex_);
    finished_.emplace_back(id, std::move(bytes));
  }
  const uint64_t one = 1;
  // Ignores failure: it can fail only if the reader is already awake.
  [[maybe_unused]] const ssize_t n = ::write(wake_.get(), &one, sizeof one);
}

void Connections::Turn(std::chrono::milliseconds at_most) {
  TakeFinished();
  Expire();
  const auto now = std::chrono::steady_clock::now();
  const bool accepts = now >= accept_after_;
  std::vector<pollfd> polled = {{wake_.get(), POLLIN, 0}, {accepts ? listening_ : -1, POLLIN, 0}};
  std::vector<uint64_t> ids;
  for (const auto& [id, connection] : table_) {
    if (connection.state == State::kAsked || connection.state == State::kStreaming) continue;
    const bool writes = connection.state == State::kWriting;
    polled.push_back({connection.socket, static_cast<short>(writes ? POLLOUT : POLLIN), 0});
    ids.push_back(id);
  }
  if (!accepts) at_most = std::min(at_most, kRestWithoutRoom);
  if (::poll(polled.data(), polled.size(), static_cast<int>(at_most.count())) <= 0) return;
  if ((polled[0].revents & POLLIN) != 0) {
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t n = ::read(wake_.get(), &count, sizeof count);
  }
  TakeFinished();
  // Existing connections come before new ones, which may take their places.
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto found = table_.find(ids[i]);
    if (polled[i + 2].revents == 0 || found == table_.end()) continue;
    switch (found->second.state) {
      case State::kReading:
        Read(ids[i]);
        break;
      case State::kWriting:
        WriteMore(ids[i]);
        break;
      case State::kDraining:
        Drain(ids[i]);
        break;
      default:
        break;
    }
  }
  if ((polled[1].revents & (POLLERR | POLLNVAL)) != 0) {
    throw Error(ErrorKind::kInfrastructure, "the server's socket failed", "start it again");
  }
  if ((polled[1].revents & POLLIN) != 0) Accept();
}

void Connections::Accept() {
  for (int i = 0; i < kAcceptedATurn; ++i) {
    sockaddr_storage peer{};
    socklen_t size = sizeof peer;
    const int socket = ::accept4(listening_, reinterpret_cast<sockaddr*>(&peer), &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (socket < 0) {
      if (errno == ECONNABORTED || errno == EINTR) continue;
      // No descriptors or no memory: existing connections may free some.
      if (!WouldWait()) accept_after_ = std::chrono::steady_clock::now() + kRestWithoutRoom;
      return;
    }
    std::string address = AddressOfPeer(peer);
    if (!MakeRoom(address)) {
      ::close(socket);
      continue;
    }
    const uint64_t id = next_id_++;
    table_.emplace(id, Connection{.socket = socket,
                                  .address = std::move(address),
                                  .state = State::kReading,
                                  .since = std::chrono::steady_clock::now(),
                                  .bytes = {}});
    Read(id);  // most clients send their request at once
  }
}

bool Connections::MakeRoom(const std::string& address) {
  size_t idle = 0;
  auto oldest_of_address = table_.end();
  auto oldest_idle = table_.end();
  auto slowest = table_.end();
  for (auto each = table_.begin(); each != table_.end(); ++each) {
    const Connection& connection = each->second;
    if (connection.is_idle() && oldest_idle == table_.end()) oldest_idle = each;
    if (connection.is_idle() && connection.address == address) {
      ++idle;
      if (oldest_of_address == table_.end()) oldest_of_address = each;
    }
    const bool writes = connection.state == State::kWriting;
    if (writes && (slowest == table_.end() || connection.since < slowest->second.since)) slowest = each;
  }
  if (idle >= kMostIdleOfAnAddress) {
    Close(oldest_of_address);
  } else if (table_.size() >= kMost) {
    const auto least = oldest_idle != table_.end() ? oldest_idle : slowest;
    if (least == table_.end()) return false;
    Close(least);
  }
  return true;
}

void Connections::TakeFinished() {
  std::vector<std::pair<uint64_t, std::string>> finished;
  {
    const std::lock_guard lock(mutex_);
    finished.swap(finished_);
  }
  for (auto& [id, bytes] : finished) {
    const auto found = table_.find(id);  // missing: it was already answered that this takes too long
    if (found == table_.end()) continue;
    const State state = found->second.state;
    if (state == State::kAsked || state == State::kStreaming) Write(id, std::move(bytes));
  }
}

void Connections::Expire() {
  const auto now = std::chrono::steady_clock::now();
  std::vector<std::pair<uint64_t, State>> late;
  for (const auto& [id, connection] : table_) {
    const auto waited = now - connection.since;
    const bool is_late = (connection.state == State::kReading && waited > kHeadPatience) ||
                         (connection.state == State::kAsked && waited > kAnswerPatience) ||
                         (connection.state == State::kWriting && waited > kWritePatience) ||
                         (connection.state == State::kDraining && waited > kDrainPatience);
    if (is_late) late.emplace_back(id, connection.state);
  }
  for (const auto& [id, state] : late) {
    if (state == State::kReading) {
      Write(id, Refusal(408, "no whole request came"));
    } else if (state == State::kAsked) {
      Write(id, Refusal(503, "this takes too long: the database may not answer, which /healthz tells",
                        "Retry-After: 30\r\n"));
    } else {
      Close(table_.find(id));
    }
  }
}

void Connections::Read(uint64_t id) {
  Connection& connection = table_.at(id);
  std::array<char, 4096> part{};
  for (;;) {
    const ssize_t n = ::recv(connection.socket, part.data(), part.size(), 0);
    if (n < 0 && WouldWait()) return;
    if (n <= 0) return Close(table_.find(id));
    const size_t looked_at = connection.bytes.size() - std::min<size_t>(connection.bytes.size(), 3);
    connection.bytes.append(part.data(), static_cast<size_t>(n));
    const size_t end = connection.bytes.find("\r\n\r\n", looked_at);
    if (end == std::string::npos ? connection.bytes.size() >= kMostHeadBytes : end > kMostHeadBytes) {
      return Write(id, Refusal(431, "the request is too long"));
    }
    if (end == std::string::npos) continue;
    connection.bytes.resize(end + 4);
    Reply reply = asked_(id, connection.socket, std::exchange(connection.bytes, {}));
    if (reply.kind == Reply::Kind::kNow) return Write(id, std::move(reply.bytes));
    connection.state = reply.kind == Reply::Kind::kLater ? State::kAsked : State::kStreaming;
    connection.since = std::chrono::steady_clock::now();
    return;
  }
}

void Connections::Write(uint64_t id, std::string bytes) {
  Connection& connection = table_.at(id);
  connection.state = State::kWriting;
  connection.since = std::chrono::steady_clock::now();
  connection.written = 0;
  connection.bytes = std::move(bytes);
  unwritten_ += connection.bytes.size();
  while (unwritten_ > kMostUnwritten) {
    auto slowest = table_.end();
    for (auto each = table_.begin(); each != table_.end(); ++each) {
      if (each->second.state != State::kWriting || each->first == id) continue;
      if (slowest == table_.end() || each->second.since < slowest->second.since) slowest = each;
    }
    if (slowest == table_.end()) break;
    Close(slowest);
  }
  WriteMore(id);
}

void Connections::WriteMore(uint64_t id) {
  const auto found = table_.find(id);
  Connection& connection = found->second;
  while (connection.written < connection.bytes.size()) {
    const ssize_t n = ::send(connection.socket, connection.bytes.data() + connection.written,
                             connection.bytes.size() - connection.written, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && WouldWait()) return;
    if (n <= 0) return Close(found);
    connection.written += static_cast<size_t>(n);
    connection.since = std::chrono::steady_clock::now();
  }
  unwritten_ -= connection.bytes.size();
  connection.bytes = {};
  // Waits until the other side has closed, too: an answer may be lost if more was sent than was read.
  ::shutdown(connection.socket, SHUT_WR);
  connection.state = State::kDraining;
  Drain(id);
}

void Connections::Drain(uint64_t id) {
  const auto found = table_.find(id);
  std::array<char, 4096> part{};
  for (;;) {
    const ssize_t n = ::recv(found->second.socket, part.data(), part.size(), MSG_DONTWAIT);
    if (n < 0 && WouldWait()) return;
    found->second.drained += n > 0 ? static_cast<size_t>(n) : 0;
    if (n <= 0 || found->second.drained > kMostDrained) return Close(found);
  }
}

void Connections::Close(Table::iterator connection) {
  if (connection->second.state == State::kWriting) unwritten_ -= connection->second.bytes.size();
  ::close(connection->second.socket);
  table_.erase(connection);
}

}  // namespace ridgeline::serve
