// A fast parser for the JSON that programs write: ASCII, no \u escapes, moderate depth and numbers. nlohmann-json takes
// three times as long. It stays the reference for what JSON is, and for error messages.
#pragma once

#include <string_view>

#include <nlohmann/json.hpp>

namespace ridgeline {

// Returns true if `text` is plain JSON; `value` then equals the result of nlohmann's parser. False says nothing about
// the text: use nlohmann's parser.
bool ParsePlainJson(std::string_view text, nlohmann::json& value);

}  // namespace ridgeline
