// A quick way through the JSON that programs write: ASCII, no \u escapes, moderate depth and numbers. nlohmann-json,
// which decides what JSON is and says what is wrong with what is not, takes three times as long.
#pragma once

#include <string_view>

#include <nlohmann/json.hpp>

namespace ridgeline {

// True where `text` is plain JSON: `value` is then what nlohmann's parser gives. False says nothing about the text:
// ask nlohmann's parser.
bool ParsePlainJson(std::string_view text, nlohmann::json& value);

}  // namespace ridgeline
