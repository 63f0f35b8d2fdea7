// What a request says, before anything looks at it: bounded, and of its headers those alone that are looked at.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace ridgeline {

// A request's line and headers, at most: those of browsers take a tenth.
inline constexpr size_t kMostHeadBytes = size_t{16} << 10;

struct PlainRequest {
  std::string method;
  std::string target;  // begins with '/'; not decoded
  // The request's line and the headers Host, Authorization and Accept. Others (a body's length, ranges, encodings) are
  // left out, so that nothing that they might do is done.
  std::string head;
  std::string accept_encoding;
  std::string if_none_match;

  // The target without its query.
  std::string_view path() const { return std::string_view(target).substr(0, target.find('?')); }
};

// Nothing for what is no HTTP/1 request of a line and headers. Of a target that is a whole URL, its host takes the
// place of the header Host.
std::optional<PlainRequest> ParsePlainRequest(std::string_view head);

// Writes all of it, or fails: to a reader that takes nothing for some seconds, too.
bool WriteSocket(int socket, std::string_view bytes);

}  // namespace ridgeline
