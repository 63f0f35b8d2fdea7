#include "serve/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/error.h"
#include "base/text.h"

namespace ridgeline::serve {
namespace {

constexpr int kGzipWindow = 15 + 16;  // zlib: the largest window, with gzip's header

// Calls `step` with buffers for the output until it reports the end.
template <typename Step>
std::string All(z_stream& stream, std::string_view bytes, Step step) {
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string out;
  std::array<char, 1 << 15> part{};
  int code = Z_OK;
  while (code == Z_OK) {
    stream.next_out = reinterpret_cast<Bytef*>(part.data());
    stream.avail_out = static_cast<uInt>(part.size());
    code = step();
    out.append(part.data(), part.size() - stream.avail_out);
  }
  if (code != Z_STREAM_END) throw Error(ErrorKind::kInternal, "zlib failed on a page");
  return out;
}

// Matches the "0" or "0.000" of "gzip;q=0".
bool IsRefused(std::string_view parameters) {
  const size_t q = parameters.find("q=");
  return q != std::string_view::npos && parameters.substr(q + 2).find_first_not_of("0. ") == std::string_view::npos;
}

}  // namespace

std::string Gzip(std::string_view bytes) {
  z_stream stream{};
  // A fast level: pages are requested more often than they are made, and a user waits while one is made.
  constexpr int kLevel = 4;
  constexpr int kMemory = 8;
  if (deflateInit2(&stream, kLevel, Z_DEFLATED, kGzipWindow, kMemory, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw Error(ErrorKind::kInternal, "zlib cannot begin");
  }
  struct End {
    z_stream& stream;
    ~End() { deflateEnd(&stream); }
  } const end{stream};
  return All(stream, bytes, [&] { return deflate(&stream, Z_FINISH); });
}

std::string Gunzip(std::string_view bytes) {
  z_stream stream{};
  if (inflateInit2(&stream, kGzipWindow) != Z_OK) throw Error(ErrorKind::kInternal, "zlib cannot begin");
  struct End {
    z_stream& stream;
    ~End() { inflateEnd(&stream); }
  } const end{stream};
  return All(stream, bytes, [&] { return inflate(&stream, Z_NO_FLUSH); });
}

bool AcceptsGzip(std::string_view accept_encoding) {
  std::optional<bool> any;
  while (!accept_encoding.empty()) {
    const size_t comma = std::min(accept_encoding.find(','), accept_encoding.size());
    const std::string_view one = Trim(accept_encoding.substr(0, comma));
    accept_encoding.remove_prefix(std::min(comma + 1, accept_encoding.size()));
    const size_t parameters = std::min(one.find(';'), one.size());
    const std::string_view name = Trim(one.substr(0, parameters));
    const bool taken = !IsRefused(one.substr(parameters));
    if (name == "gzip") return taken;
    if (name == "*") any = taken;
  }
  return any.value_or(false);
}

}  // namespace ridgeline::serve
