#include "serve/connection.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>

#include "base/text.h"

namespace ridgeline {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kHeadPatience = std::chrono::seconds(5);
constexpr std::chrono::milliseconds kWritePatience = std::chrono::seconds(10);
constexpr std::chrono::milliseconds kClosePatience = std::chrono::milliseconds(500);
constexpr size_t kMostDrained = size_t{256} << 10;
constexpr size_t kMostTargetBytes = size_t{4} << 10;

// In lower case.
constexpr std::array<std::string_view, 3> kKeptHeaders = {"host", "authorization", "accept"};

// Whether the socket is ready for `events` before the deadline.
bool WaitFor(int socket, short events, SteadyClock::time_point deadline) {
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - SteadyClock::now()).count();
    if (left <= 0) return false;
    pollfd one{socket, events, 0};
    const int ready = ::poll(&one, 1, static_cast<int>(left));
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

std::string Lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return out;
}

bool IsVisible(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < '\x7f'; });
}

}  // namespace

std::optional<std::string> PlainHead(std::string_view head) {
  std::string kept;
  std::array<int, kKeptHeaders.size()> seen{};
  while (!head.empty()) {
    const size_t end = head.find("\r\n");
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view line = head.substr(0, end);
    head.remove_prefix(end + 2);
    if (line.empty()) break;
    if (line.find_first_of(std::string_view("\0\r\n", 3)) != std::string_view::npos) return std::nullopt;
    if (kept.empty()) {
      const size_t target = line.find(' ');
      const size_t version = line.rfind(' ');
      if (target == std::string_view::npos || version <= target) return std::nullopt;
      const std::string_view address = line.substr(target + 1, version - target - 1);
      const bool plain = IsVisible(line.substr(0, target)) && IsVisible(address) && address.starts_with('/') &&
                         address.size() <= kMostTargetBytes && line.substr(version + 1).starts_with("HTTP/1.");
      if (!plain) return std::nullopt;
      kept = std::string(line.substr(0, target + 1)) + std::string(address) + " HTTP/1.1\r\n";
      continue;
    }
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) return std::nullopt;
    const auto known = std::find(kKeptHeaders.begin(), kKeptHeaders.end(), Lower(line.substr(0, colon)));
    if (known == kKeptHeaders.end()) continue;
    // Which of two would be meant?
    if (++seen[static_cast<size_t>(known - kKeptHeaders.begin())] > 1 && *known != "accept") return std::nullopt;
    kept += std::string(line) + "\r\n";
  }
  if (kept.empty()) return std::nullopt;
  return kept + "\r\n";
}

std::optional<std::string> ReadHead(int socket) {
  const auto deadline = SteadyClock::now() + kHeadPatience;
  std::string head;
  std::array<char, 4096> part{};
  while (head.find("\r\n\r\n") == std::string::npos) {
    if (head.size() >= kMostHeadBytes || !WaitFor(socket, POLLIN, deadline)) return std::nullopt;
    const ssize_t n = ::recv(socket, part.data(), std::min(part.size(), kMostHeadBytes - head.size()), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return std::nullopt;
    head.append(part.data(), static_cast<size_t>(n));
  }
  return head;
}

bool WriteSocket(int socket, std::string_view bytes) {
  const auto deadline = SteadyClock::now() + kWritePatience;
  while (!bytes.empty()) {
    if (!WaitFor(socket, POLLOUT, deadline)) return false;
    const ssize_t n = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

void CloseGently(int socket) {
  ::shutdown(socket, SHUT_WR);
  const auto deadline = SteadyClock::now() + kClosePatience;
  std::array<char, 4096> part{};
  size_t drained = 0;
  while (drained < kMostDrained && WaitFor(socket, POLLIN, deadline)) {
    const ssize_t n = ::recv(socket, part.data(), part.size(), MSG_DONTWAIT);
    if (n <= 0) break;
    drained += static_cast<size_t>(n);
  }
  ::close(socket);
}

}  // namespace ridgeline
