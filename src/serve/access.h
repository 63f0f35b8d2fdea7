// Access control: who may send requests, and under which host name. This is checked before a request is answered.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace ridgeline::serve {

// The address on which a server listens: an IP address and a port (0: any free one).
struct ListenAddress {
  std::string host;
  int port = 0;
};

// Parses "127.0.0.1:8320", "[::1]:8320" or "localhost:8320". Throws Error(kUsage) for anything else.
ListenAddress ParseListenAddress(const std::string& text);

// Parses the prefix that a proxy puts before every path: "/ridgeline", "/bench/a". Empty for "/". Throws Error(kUsage)
// for anything else.
std::string ParseBasePath(const std::string& text);

// Whether only this machine can reach it.
bool IsLoopback(const std::string& host);

// Whether a request may use this host name, the value of a Host header. A hostile page whose name is made to point to
// this machine (DNS rebinding) sends that name. So only IP addresses, which cannot be made to mean another machine,
// localhost and `names` are accepted, each with any port.
bool IsKnownHost(std::string_view host_header, std::span<const std::string> names);

// Whether an Authorization header's value has the token: "Bearer TOKEN", or "Basic" with the token as the password,
// which browsers ask for. Takes the same time whatever part of the token is right.
bool HasToken(std::string_view authorization, const std::string& token);

// Reads the token from a file that only its owner can read. Throws Error(kUsage) if others can read it, if it is short,
// or if it is not exactly one line.
std::string ReadTokenFile(const std::string& path);

}  // namespace ridgeline::serve
