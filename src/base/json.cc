#include "base/json.h"

#include "base/error.h"
#include "base/files.h"
#include "base/plain_json.h"

namespace ridgeline {

Json ParseJson(std::string_view text, const std::string& source) {
  if (Json value; ParsePlainJson(text, value)) return value;
  try {
    return Json::parse(text);
  } catch (const Json::exception& e) {
    throw Error(ErrorKind::kInvalidInput, source + ": not JSON: " + e.what(),
                text.empty() ? "the file is empty; it may have been cut short" : "");
  }
}

Json ReadJsonFile(const std::filesystem::path& path) { return ParseJson(ReadFile(path), path.string()); }

std::string DumpJson(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace ridgeline
