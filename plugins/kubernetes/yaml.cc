#include "kubernetes/yaml.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include <fmt/format.h>

namespace ridgeline::kubernetes {
namespace {

using plugin::Json;

// Whether text can be written without quotes. It must begin with a letter and have only characters without a meaning to
// YAML. It must not be a word with a meaning in YAML 1.1.
bool IsPlain(std::string_view text) {
  static constexpr std::array<std::string_view, 9> kWords = {"y",   "n",    "yes",   "no",  "on",
                                                             "off", "true", "false", "null"};
  if (text.empty() || std::isalpha(static_cast<unsigned char>(text.front())) == 0) return false;
  const bool safe = std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return (c < 0x80 && std::isalnum(c) != 0) || c == '-' || c == '_' || c == '.' || c == '/';
  });
  std::string lower;
  for (const char c : text) lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return safe && std::find(kWords.begin(), kWords.end(), lower) == kWords.end();
}

// JSON's escapes are YAML's, except that YAML writes as one character what JSON writes as a surrogate pair. Everything
// beyond ASCII is escaped, including the line separators that YAML knows.
std::string Quoted(const std::string& text) {
  constexpr size_t kEscape = 6;  // "\ud83d"
  std::string quoted = Json(text).dump(-1, ' ', true, Json::error_handler_t::replace);
  const auto unit = [&](size_t at) {
    return static_cast<uint32_t>(std::strtoul(quoted.substr(at + 2, kEscape - 2).c_str(), nullptr, 16));
  };
  for (size_t at = quoted.find('\\'); at != std::string::npos; at = quoted.find('\\', at + 2)) {
    if (quoted[at + 1] != 'u' || unit(at) < 0xd800 || unit(at) > 0xdbff) continue;
    const uint32_t character = 0x10000 + ((unit(at) - 0xd800) << 10) + (unit(at + kEscape) - 0xdc00);
    quoted.replace(at, 2 * kEscape, fmt::format("\\U{:08x}", character));
  }
  return quoted;
}

std::string Scalar(const Json& value) {
  if (!value.is_string()) return value.dump();
  const auto& text = value.get_ref<const std::string&>();
  return IsPlain(text) ? text : Quoted(text);
}

// Whether a block keeps the text: lines of printable ASCII that end with a line end, the first not indented.
bool IsBlock(const Json& value) {
  if (!value.is_string()) return false;
  const auto& text = value.get_ref<const std::string&>();
  return text.size() > 1 && text.back() == '\n' && text[text.size() - 2] != '\n' && text.front() != ' ' &&
         text.front() != '\n' && text.find(" \n") == std::string::npos &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return (c >= ' ' && c < 0x7f) || c == '\n'; });
}

void Write(std::string& out, const Json& value, size_t indent);

// Writes what follows "key:" or "-".
void WriteValue(std::string& out, const Json& value, size_t indent) {
  if (value.is_structured() && !value.empty()) {
    out += '\n';
    Write(out, value, indent);
  } else if (IsBlock(value)) {
    out += " |\n";
    const auto& text = value.get_ref<const std::string&>();
    for (size_t at = 0; at < text.size();) {
      const size_t end = text.find('\n', at);
      if (end > at) out += std::string(indent, ' ') + text.substr(at, end - at);
      out += '\n';
      at = end + 1;
    }
  } else {
    out += ' ' + Scalar(value) + '\n';
  }
}

void Write(std::string& out, const Json& value, size_t indent) {
  const std::string margin(indent, ' ');
  if (value.is_object()) {
    for (const auto& [key, item] : value.items()) {
      out += margin + (IsPlain(key) ? key : Quoted(key)) + ':';
      // A list's dashes have the indent of its key.
      WriteValue(out, item, item.is_array() ? indent : indent + 2);
    }
  } else if (value.is_array()) {
    for (const Json& item : value) {
      std::string text;
      WriteValue(text, item, indent + 2);
      // The first line of a mapping follows the dash.
      const bool nested = item.is_structured() && !item.empty();
      out += margin + '-' + (nested ? ' ' + text.substr(1 + indent + 2) : text);
    }
  } else {
    out += margin + Scalar(value) + '\n';
  }
}

}  // namespace

std::string ToYaml(const Json& document) {
  std::string out;
  Write(out, document, 0);
  return out;
}

}  // namespace ridgeline::kubernetes
