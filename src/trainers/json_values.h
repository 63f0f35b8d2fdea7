// Values that stand in JSON, in a line of a log or in a file, by the keys that lead to them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"

namespace ridgeline {

struct JsonPaths {
  std::string_view value;  // RFC 6901, as are those of step and rank, which may be empty
  std::string_view step;
  std::string_view rank;
};

struct JsonValue {
  std::string text;  // of a number, or of a text as it is
  std::optional<std::string> step;
  std::optional<std::string> rank;
};

// Every number and text that the path leads to. On its way a list stands for each of its items, unless the path has a
// place in it, and a list at its end for each of its numbers. Keys may have slashes of their own: /train/loss leads to
// {"train": {"loss": 1}} and to {"train/loss": 1}. Step and rank are those of the nearest mapping that has them, of a
// list of numbers at the path's end the items at the same places.
void CollectJson(const Json& document, const JsonPaths& paths, const std::function<void(const JsonValue&)>& take);

// Each JSON object of a line, wherever it begins. NaN and Infinity, which Python writes there, are texts.
void ForEachObject(std::string_view line, const std::function<void(const Json&)>& take);

// A file of JSON, or of a JSON object a line, which then is a list of these. Throws Error(kInvalidInput) as ParseJson.
Json ParseJsonOrLines(std::string_view text, const std::string& source);

}  // namespace ridgeline
