// gzip, for bodies that go over a network: zlib's one wrapper.
#pragma once

#include <string>
#include <string_view>

namespace ridgeline {

std::string Gzip(std::string_view bytes);
// REQUIRES: what Gzip made.
std::string Gunzip(std::string_view bytes);

// Whether a header Accept-Encoding takes gzip: "gzip, deflate, br", "*", not "gzip;q=0".
bool AcceptsGzip(std::string_view accept_encoding);

}  // namespace ridgeline
