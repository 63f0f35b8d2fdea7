#include "report/escape.h"

#include "base/text.h"

namespace ridgeline::report {

std::string EscapeHtml(std::string_view text) {
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  while (!text.empty()) {
    const std::string_view before = text;
    const char32_t code = NextCodePoint(text);
    switch (code) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '\n':
        out += "&#10;";
        break;
      case '\t':
        out += "&#9;";
        break;
      case '\r':
        if (text.starts_with('\n')) break;
        [[fallthrough]];
      default:
        const std::string_view bytes = before.substr(0, before.size() - text.size());
        // XML does not allow U+FFFE and U+FFFF either.
        if (IsControl(code) || (code & 0xFFFEU) == 0xFFFEU) {
          out += Escape(code, bytes);
        } else {
          out += bytes;
        }
    }
  }
  return out;
}

std::string ScriptJson(const Json& value) {
  std::string out;
  // ASCII only, so that XML and browsers read every character as JSON does.
  for (const char c : value.dump(-1, ' ', true, Json::error_handler_t::replace)) {
    switch (c) {
      case '<':
        out += "\\u003c";
        break;
      case '>':
        out += "\\u003e";
        break;
      case '&':
        out += "\\u0026";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace ridgeline::report
