// Who may ask, and by which name: what is looked at before a request is answered.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace ridgeline {

// Where a server listens: an IP address, and a port (0: any that is free).
struct ListenAddress {
  std::string host;
  int port = 0;
};

// "127.0.0.1:8320", "[::1]:8320", "localhost:8320". Throws Error(kUsage) for anything else.
ListenAddress ParseListenAddress(const std::string& text);

// What a proxy has before every path: "/ridgeline", "/bench/a". Empty for "/". Throws Error(kUsage) for anything else.
std::string ParseBasePath(const std::string& text);

// Whether only this machine reaches it.
bool IsLoopback(const std::string& host);

// Whether a page may be asked for by this name, a Host header's value. A page of somebody else's whose name is made to
// mean this machine (DNS rebinding) asks by that name: so an IP address, which cannot be made to mean another,
// localhost and `names` are let in, each with any port.
bool IsKnownHost(std::string_view host_header, std::span<const std::string> names);

// Whether an Authorization header's value has the token: "Bearer TOKEN", or "Basic" with it as the password, which
// browsers ask for. Takes as long whatever of the token is right.
bool HasToken(std::string_view authorization, const std::string& token);

// Of a file for its owner alone to read. Throws Error(kUsage) where others may read it or it is short, or has anything
// else than one line.
std::string ReadTokenFile(const std::string& path);

}  // namespace ridgeline
