// The plain content of a request, before it is checked: bounded in size, and with only the headers that are used.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace ridgeline::serve {

// The largest size of a request's line and headers. Those of browsers take a tenth.
inline constexpr size_t kMostHeadBytes = size_t{16} << 10;

struct PlainRequest {
  std::string method;
  std::string target;  // begins with '/'; not decoded
  // The request line and the headers Host, Authorization and Accept. Others (a body's length, ranges, encodings) are
  // left out, so that they can have no effect.
  std::string head;
  std::string accept_encoding;
  std::string if_none_match;

  // The target without its query.
  std::string_view path() const { return std::string_view(target).substr(0, target.find('?')); }
};

// Returns nothing if it is no HTTP/1 request with a line and headers. If the target is a whole URL, its host replaces
// the Host header.
std::optional<PlainRequest> ParsePlainRequest(std::string_view head);

// Writes all of it, or fails, also if the reader accepts nothing for some seconds.
bool WriteSocket(int socket, std::string_view bytes);

}  // namespace ridgeline::serve
