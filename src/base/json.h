// JSON, through nlohmann-json. Object keys are sorted, so dump() of equal documents is equal text.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace ridgeline {

using Json = nlohmann::json;

// What is nested deeper than any document of ours is refused: who walks through it would run out of stack.
inline constexpr int kMaxJsonDepth = 64;

// Throws Error(kInvalidInput) naming `source` (a file or what the text is) and the position of the fault.
Json ParseJson(std::string_view text, const std::string& source);

// The same for a file; throws Error(kInfrastructure) where it cannot be read.
Json ReadJsonFile(const std::filesystem::path& path);

// Invalid UTF-8 is replaced, so that no text from outside can make this throw. `indent` < 0: one line.
std::string DumpJson(const Json& value, int indent = -1);

// The same value, as a terminal can be shown it: what it would obey is written as \u escapes.
std::string ShowJson(const Json& value, int indent = -1);

}  // namespace ridgeline
