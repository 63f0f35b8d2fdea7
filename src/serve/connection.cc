#include "serve/connection.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>

#include "base/text.h"

namespace ridgeline::serve {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kWritePatience = std::chrono::seconds(10);
constexpr size_t kMostTargetBytes = size_t{4} << 10;

// The headers that are read, in lower case.
constexpr std::array<std::string_view, 5> kReadHeaders = {"host", "authorization", "accept", "accept-encoding",
                                                          "if-none-match"};

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

// The request line. Nothing if it is invalid.
struct RequestLine {
  std::string method;
  std::string target;
  std::string host;  // for a target that is a whole URL; else empty
};
std::optional<RequestLine> ParseRequestLine(std::string_view line) {
  const size_t target = line.find(' ');
  const size_t version = line.rfind(' ');
  if (target == std::string_view::npos || version <= target) return std::nullopt;
  const std::string_view address = line.substr(target + 1, version - target - 1);
  const bool plain = target > 0 && IsVisible(line.substr(0, target)) && IsVisible(address) &&
                     address.size() <= kMostTargetBytes && line.substr(version + 1).starts_with("HTTP/1.");
  if (!plain) return std::nullopt;
  RequestLine parsed{std::string(line.substr(0, target)), std::string(address), {}};
  if (address.starts_with('/')) return parsed;
  const size_t scheme = address.find("://");
  if (scheme == std::string_view::npos) return std::nullopt;
  const std::string name = Lower(address.substr(0, scheme));
  if (name != "http" && name != "https") return std::nullopt;
  const std::string_view rest = address.substr(scheme + 3);
  const size_t path = std::min(rest.find_first_of("/?#"), rest.size());
  parsed.host = rest.substr(0, path);
  parsed.target = rest.substr(path);
  if (!parsed.target.starts_with('/')) parsed.target.insert(0, "/");
  if (parsed.host.empty() || parsed.host.find('@') != std::string::npos) return std::nullopt;
  return parsed;
}

}  // namespace

std::optional<PlainRequest> ParsePlainRequest(std::string_view head) {
  std::optional<RequestLine> asked;
  PlainRequest request;
  std::array<int, kReadHeaders.size()> seen{};
  while (!head.empty()) {
    const size_t end = head.find("\r\n");
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view line = head.substr(0, end);
    head.remove_prefix(end + 2);
    if (line.empty()) break;
    if (line.find_first_of(std::string_view("\0\r\n", 3)) != std::string_view::npos) return std::nullopt;
    if (!asked) {
      asked = ParseRequestLine(line);
      if (!asked) return std::nullopt;
      request.head = asked->method + " " + asked->target + " HTTP/1.1\r\n";
      if (!asked->host.empty()) request.head += "Host: " + asked->host + "\r\n";
      continue;
    }
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) return std::nullopt;
    const std::string name = Lower(line.substr(0, colon));
    const auto known = std::find(kReadHeaders.begin(), kReadHeaders.end(), name);
    if (known == kReadHeaders.end()) continue;
    // Refused if repeated, because it would be unclear which one counts.
    const bool one_alone = name == "host" || name == "authorization";
    if (++seen[static_cast<size_t>(known - kReadHeaders.begin())] > 1 && one_alone) return std::nullopt;
    if (name == "accept-encoding" || name == "if-none-match") {
      std::string& value = name == "accept-encoding" ? request.accept_encoding : request.if_none_match;
      value += (value.empty() ? "" : ", ") + std::string(Trim(line.substr(colon + 1)));
    } else if (name != "host" || asked->host.empty()) {
      request.head += std::string(line) + "\r\n";
    }
  }
  if (!asked) return std::nullopt;
  request.method = asked->method;
  request.target = asked->target;
  request.head += "\r\n";
  return request;
}

bool WriteSocket(int socket, std::string_view bytes) {
  auto deadline = SteadyClock::now() + kWritePatience;
  while (!bytes.empty()) {
    if (!WaitFor(socket, POLLOUT, deadline)) return false;
    const ssize_t n = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
    deadline = SteadyClock::now() + kWritePatience;
  }
  return true;
}

}  // namespace ridgeline::serve
