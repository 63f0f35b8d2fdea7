// One connection: its request read whole and bounded, before anything looks at it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace ridgeline {

// A request's line and headers, at most: those of browsers take a tenth.
inline constexpr size_t kMostHeadBytes = size_t{16} << 10;

// What of a request is answered: its line, and the headers that we look at. Others (a body's length, ranges,
// encodings) are left out, so that nothing that they might do is done. Nothing for what is no HTTP/1 request of a line
// and headers.
std::optional<std::string> PlainHead(std::string_view head);

// Reads from a socket until an empty line ends the head, for a few seconds at most. Nothing where it does not come, or
// is longer.
std::optional<std::string> ReadHead(int socket);

// Writes all of it, or fails: to who takes nothing for a few seconds, too.
bool WriteSocket(int socket, std::string_view bytes);

// Ends a connection whose answer is written, so that it arrives even where more was sent than was read.
void CloseGently(int socket);

}  // namespace ridgeline
