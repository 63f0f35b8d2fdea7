#include "serve/access.h"

#include <arpa/inet.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cstdint>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/secret_file.h"
#include "base/text.h"

namespace ridgeline::serve {
namespace {

constexpr size_t kShortestToken = 16;
constexpr int kMostPort = 65535;

bool IsAddress(const std::string& host) {
  in6_addr room{};
  return ::inet_pton(AF_INET, host.c_str(), &room) == 1 || ::inet_pton(AF_INET6, host.c_str(), &room) == 1;
}

// Splits off the host of "host", "host:port", "[address]" or "[address]:port"; the second part is the rest.
std::pair<std::string, std::string_view> SplitHost(std::string_view text) {
  if (text.starts_with('[')) {
    const size_t end = text.find(']');
    if (end == std::string_view::npos) return {{}, text};
    return {std::string(text.substr(1, end - 1)), text.substr(end + 1)};
  }
  const size_t colon = std::min(text.find(':'), text.size());
  return {std::string(text.substr(0, colon)), text.substr(colon)};
}

bool SameName(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
    const auto lower = [](unsigned char c) { return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : +c; };
    return lower(x) == lower(y);
  });
}

// Returns nothing if it is no base64.
std::string FromBase64(std::string_view text) {
  static constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  while (text.ends_with('=')) text.remove_suffix(1);
  std::string out;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) return {};
    bits = bits << 6U | static_cast<uint32_t>(digit);
    count += 6;
    if (count >= 8) {
      count -= 8;
      out += static_cast<char>(bits >> static_cast<unsigned>(count) & 0xFFU);
    }
  }
  return out;
}

bool SameSecret(std::string_view said, std::string_view secret) {
  unsigned difference = said.size() == secret.size() ? 0 : 1;
  for (size_t i = 0; i < said.size(); ++i) {
    difference |= static_cast<unsigned char>(said[i]) ^ static_cast<unsigned char>(secret[i % secret.size()]);
  }
  return difference == 0;
}

}  // namespace

ListenAddress ParseListenAddress(const std::string& text) {
  auto [host, rest] = SplitHost(text.empty() ? std::string_view(":") : std::string_view(text));
  ListenAddress address{host == "localhost" ? "127.0.0.1" : host, 0};
  const char* end = rest.data() + rest.size();
  const bool has_port = rest.size() > 1 && rest.front() == ':';
  const auto [stop, error] = std::from_chars(rest.data() + (has_port ? 1 : 0), end, address.port);
  if (!has_port || error != std::errc() || stop != end || address.port < 0 || address.port > kMostPort ||
      !IsAddress(address.host)) {
    throw Error(ErrorKind::kUsage, fmt::format("serve: '{}' is not an address to listen on", PrintableLine(text)),
                "an IP address and a port, such as 127.0.0.1:8320, [::1]:8320 or 0.0.0.0:8320; port 0 is any");
  }
  return address;
}

std::string ParseBasePath(const std::string& text) {
  std::string path = text;
  while (path.ends_with('/')) path.pop_back();
  const bool plain = std::all_of(path.begin(), path.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("/-._~").find(c) != std::string_view::npos;
  });
  const bool steps = path.find("//") != std::string::npos || path.find("/.") != std::string::npos;
  if (text.empty() || !text.starts_with('/') || !plain || steps) {
    throw Error(ErrorKind::kUsage, fmt::format("serve: '{}' is not a base path", PrintableLine(text)),
                "a base path begins with a slash and has letters and digits, such as /ridgeline");
  }
  return path;
}

bool IsLoopback(const std::string& host) {
  in_addr four{};
  if (::inet_pton(AF_INET, host.c_str(), &four) == 1) return (ntohl(four.s_addr) >> 24U) == 127;
  in6_addr six{};
  return ::inet_pton(AF_INET6, host.c_str(), &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

bool IsKnownHost(std::string_view host_header, std::span<const std::string> names) {
  if (host_header.empty()) return false;
  const auto parts = SplitHost(host_header);
  const std::string& host = parts.first;
  const std::string_view rest = parts.second;
  const bool only_a_port =
      rest.empty() || (rest.front() == ':' && rest.find_first_not_of("0123456789", 1) == rest.npos);
  if (!only_a_port) return false;
  return IsAddress(host) || SameName(host, "localhost") ||
         std::any_of(names.begin(), names.end(), [&](const std::string& name) { return SameName(host, name); });
}

bool HasToken(std::string_view authorization, const std::string& token) {
  if (token.empty()) return false;
  const size_t space = std::min(authorization.find(' '), authorization.size());
  const std::string_view scheme = authorization.substr(0, space);
  const std::string_view said = Trim(authorization.substr(space));
  if (SameName(scheme, "Bearer")) return SameSecret(said, token);
  if (!SameName(scheme, "Basic")) return false;
  const std::string pair = FromBase64(said);
  const size_t colon = pair.find(':');
  return colon != std::string::npos && SameSecret(std::string_view(pair).substr(colon + 1), token);
}

std::string ReadTokenFile(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) ThrowErrno("cannot read " + path);
  if (const std::string others = WhoElseKnows(info); !others.empty()) {
    throw Error(ErrorKind::kUsage, fmt::format("serve: {}, which has the token, {}", path, others),
                "make it a file of yours that only you can read: chmod 600");
  }
  const std::string text = ReadFile(path);
  std::string token(Trim(std::string_view(text).substr(0, text.find_last_not_of("\r\n") + 1)));
  const bool plain = std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c < '\x7f'; });
  if (!plain || token.size() < kShortestToken) {
    throw Error(
        ErrorKind::kUsage, fmt::format("serve: the token in {} could be guessed", path),
        fmt::format("one line of {} letters and digits or more: `openssl rand -hex 32` makes one", kShortestToken));
  }
  return token;
}

}  // namespace ridgeline::serve
