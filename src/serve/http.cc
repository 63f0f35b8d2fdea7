#include "serve/http.h"

#include <cctype>

#include <fmt/format.h>

namespace ridgeline::serve {
namespace {

std::string PercentEncoded(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain =
        (std::isalnum(byte) != 0 && byte < 0x80) || std::string_view("-._~").find(c) != std::string_view::npos;
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", byte);
  }
  return out;
}

}  // namespace

std::string PageRequest::Value(std::string_view name) const {
  for (const auto& [key, value] : query) {
    if (key == name) return value;
  }
  return {};
}

std::vector<std::string> PageRequest::Values(std::string_view name) const {
  std::vector<std::string> values;
  for (const auto& [key, value] : query) {
    if (key == name) values.push_back(value);
  }
  return values;
}

std::string Links::operator()(const std::vector<std::string>& parts, const QueryValues& values) const {
  std::string address = base_;
  for (const std::string& part : parts) address += "/" + PercentEncoded(part);
  if (parts.empty()) address += "/";
  char before = '?';
  for (const auto& [name, value] : values) {
    if (value.empty()) continue;
    address += fmt::format("{}{}={}", before, PercentEncoded(name), PercentEncoded(value));
    before = '&';
  }
  return address;
}

}  // namespace ridgeline::serve
