#include "base/json.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <optional>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/plain_json.h"
#include "base/text.h"
#include "ridgeline/json_fault.h"

namespace ridgeline {
namespace {

constexpr size_t kMaxJsonFileBytes = size_t{128} << 20;

// Brackets within strings do not count.
bool IsTooDeep(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') quoted = !quoted;
    if (quoted && c == '\\') ++i;
    if (quoted) continue;
    if ((c == '[' || c == '{') && ++depth > kMaxJsonDepth) return true;
    if (c == ']' || c == '}') --depth;
  }
  return false;
}

}  // namespace

Json ParseJson(std::string_view text, const std::string& source) {
  if (Json value; ParsePlainJson(text, value)) return value;
  if (IsTooDeep(text)) {
    throw Error(ErrorKind::kInvalidInput, source + ": not JSON: lists and objects in each other, more than " +
                                              std::to_string(kMaxJsonDepth) + " deep");
  }
  try {
    return Json::parse(text);
  } catch (const Json::exception& e) {
    throw Error(ErrorKind::kInvalidInput, source + ": not JSON: " + JsonFault(e),
                text.empty() ? "the file is empty; it may have been cut short" : "");
  }
}

Json ReadJsonFile(const std::filesystem::path& path) {
  const std::optional<std::string> text = ReadFileIfThere(path, kMaxJsonFileBytes + 1);
  if (!text) {
    errno = ENOENT;
    ThrowErrno("cannot read " + path.string());
  }
  if (text->size() > kMaxJsonFileBytes) {
    throw Error(ErrorKind::kInvalidInput,
                fmt::format("{} is larger than {} MiB", path.string(), kMaxJsonFileBytes >> 20),
                "no JSON file that Ridgeline reads is so large: name another");
  }
  return ParseJson(*text, path.string());
}

std::string DumpJson(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string ShowJson(const Json& value, int indent) {
  std::string text = DumpJson(value, indent);
  // Characters outside ASCII occur only in strings. ASCII's own controls are already escaped, except DEL.
  const auto ordinary = [](char c) { return (c & '\x80') == 0 && c != '\x7f'; };
  if (std::all_of(text.begin(), text.end(), ordinary)) return text;
  std::string shown;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view before = rest;
    const char32_t code = NextCodePoint(rest);
    if (code >= 0x7F && IsControl(code)) {
      shown += fmt::format("\\u{:04x}", static_cast<uint32_t>(code));
    } else {
      shown += before.substr(0, before.size() - rest.size());
    }
  }
  return shown;
}

}  // namespace ridgeline
