// JSON, through nlohmann-json. Object keys are sorted, so dump() of equal documents is equal text.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace ridgeline {

using Json = nlohmann::json;

// Documents that are nested deeper than any of ours are refused, because walking through them would overflow the stack.
inline constexpr int kMaxJsonDepth = 64;

// Throws Error(kInvalidInput), which names `source` (a file, or what the text is) and the position of the fault.
Json ParseJson(std::string_view text, const std::string& source);

// The same for a file. Throws Error(kInfrastructure) if it cannot be read.
Json ReadJsonFile(const std::filesystem::path& path);

// Replaces invalid UTF-8, so that text from outside cannot make this throw. `indent` < 0: one line.
std::string DumpJson(const Json& value, int indent = -1);

// The same, safe for a terminal: characters that it would obey are written as \u escapes.
std::string ShowJson(const Json& value, int indent = -1);

}  // namespace ridgeline
