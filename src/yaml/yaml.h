// YAML, read with yaml-cpp into a plain tree in which every node has its line and column, and faults with their places.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace ridgeline::yaml {

struct Place {
  int line = 1;  // both count from 1, as editors do
  int column = 1;
};

// Places of values that are not in a file but in an option of the command line.
inline constexpr Place kPlaceOfSet = {0, 0};    // -S
inline constexpr Place kPlaceOfOnly = {-1, 0};  // --only

struct YamlEntry;

struct YamlNode {
  enum class Kind { kScalar, kList, kMap };
  Kind kind = Kind::kScalar;
  Place place;
  // A scalar by YAML 1.2's core schema: null, true, false, integers (also 0x and 0o) and floats. Everything else, and
  // everything quoted, is text. So `1e-4` is a number; `yes` and "8" are text.
  Json scalar;
  std::vector<YamlNode> items;     // of a list
  std::vector<YamlEntry> entries;  // of a map, in order; keys may repeat
};

struct YamlEntry {
  YamlNode key;
  YamlNode value;
};

// A fault at a place, without the file's name.
struct Fault {
  Place place;
  std::string message;
};

// Limits of one document. An alias counts as much as the node it refers to, and an anchor twice.
struct YamlLimits {
  size_t bytes = size_t{16} << 20;  // of the file
  int64_t nodes = 2'000'000;
  int64_t text_bytes = int64_t{64} << 20;  // of scalars
  int depth = 64;
  std::chrono::nanoseconds time = std::chrono::seconds(20);  // of processor time
};

// Parses one document. A character above U+FFFF may be escaped as a pair, as in JSON. Throws Fault if the text is not
// YAML in UTF-8, has several documents, or exceeds a limit.
YamlNode ParseYaml(std::string_view text, const YamlLimits& limits = {});

// Converts a node to JSON. Repeated keys are appended to `faults`.
Json ToJsonValue(const YamlNode& node, std::vector<Fault>& faults);

// What to call a node in a message: "a list", "a mapping", "\"8\"".
std::string Describe(const YamlNode& node);

// "file:line:column: message", or "-S: message", on one line, shortened if it is long.
std::string FaultText(const std::filesystem::path& file, const Fault& fault);

// Throws one Error(kInvalidInput) that has every fault on a line of its own, sorted by place, and `hint`.
[[noreturn]] void ThrowFaults(const std::filesystem::path& file, std::vector<Fault> faults, const std::string& hint);

}  // namespace ridgeline::yaml
