// gzip for bodies that go over a network. The only wrapper of zlib.
#pragma once

#include <string>
#include <string_view>

namespace ridgeline::serve {

std::string Gzip(std::string_view bytes);
// REQUIRES: output of Gzip.
std::string Gunzip(std::string_view bytes);

// Whether an Accept-Encoding header accepts gzip: "gzip, deflate, br" and "*" do, "gzip;q=0" does not.
bool AcceptsGzip(std::string_view accept_encoding);

}  // namespace ridgeline::serve
