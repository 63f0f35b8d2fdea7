// Finds values in JSON, in lines of a log or in a file, by their keys.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"

namespace ridgeline::trainers {

struct JsonPaths {
  std::string_view value;  // JSON pointer (RFC 6901), as `step` and `rank`, which may be empty
  std::string_view step;
  std::string_view rank;
};

struct JsonValue {
  std::string text;  // of a number, or a string's content
  std::optional<std::string> step;
  std::optional<std::string> rank;
};

// Calls `take` with every number and string at the path. A list on the path stands for each of its items, unless the
// path has an index there. A list at the end of the path stands for each of its numbers. Keys may contain slashes:
// /train/loss finds {"train": {"loss": 1}} and {"train/loss": 1}. Step and rank come from the nearest enclosing object
// that has them; for a list at the end of the path, they are the items at the same index.
void CollectJson(const Json& document, const JsonPaths& paths, const std::function<void(const JsonValue&)>& take);

// Calls `take` with each JSON object in a line, wherever it begins. NaN and Infinity, which Python writes, become
// strings.
void ForEachObject(std::string_view line, const std::function<void(const Json&)>& take);

// Parses a JSON document, or JSON lines, which become a list. Throws Error(kInvalidInput) as ParseJson does.
Json ParseJsonOrLines(std::string_view text, const std::string& source);

}  // namespace ridgeline::trainers
