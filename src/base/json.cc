#include "base/json.h"

#include "base/error.h"
#include "base/files.h"
#include "base/plain_json.h"
#include "base/text.h"

namespace ridgeline {
namespace {

constexpr size_t kFaultBytes = 400;  // of the parser's words, which quote what they are about

// Brackets in texts do not count.
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
    throw Error(ErrorKind::kInvalidInput, source + ": not JSON: " + Shortened(e.what(), kFaultBytes),
                text.empty() ? "the file is empty; it may have been cut short" : "");
  }
}

Json ReadJsonFile(const std::filesystem::path& path) { return ParseJson(ReadFile(path), path.string()); }

std::string DumpJson(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace ridgeline
