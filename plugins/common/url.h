// Texts in addresses of HTTP.
#pragma once

#include <string>
#include <string_view>

namespace ridgeline::plugin {

// Encodes for a query: everything except letters, digits and -_.~ becomes %XX. `also`: characters that stay, too.
inline std::string UrlEncode(std::string_view text, std::string_view also = {}) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                       c == '_' || c == '.' || c == '~' || also.find(c) != std::string_view::npos;
    if (plain) {
      encoded += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    encoded += {'%', kDigits[byte >> 4U], kDigits[byte & 15U]};
  }
  return encoded;
}

}  // namespace ridgeline::plugin
