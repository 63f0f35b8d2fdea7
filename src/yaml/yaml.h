// YAML, through yaml-cpp: a plain tree in which every node knows its place, and what is wrong in it, said with the
// place.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace ridgeline {

struct Place {
  int line = 1;  // both count from 1, as editors do
  int column = 1;
};

struct YamlEntry;

struct YamlNode {
  enum class Kind { kScalar, kList, kMap };
  Kind kind = Kind::kScalar;
  Place place;
  // A scalar by YAML 1.2's core schema: null, true and false, integers (0x and 0o too), floats; all else, and anything
  // quoted, is text. So `1e-4` is a number, `yes` and "8" are text.
  Json scalar;
  std::vector<YamlNode> items;     // of a list
  std::vector<YamlEntry> entries;  // of a map, in order; keys may repeat
};

struct YamlEntry {
  YamlNode key;
  YamlNode value;
};

// A fault, before it is put into words with the file's name.
struct Fault {
  Place place;
  std::string message;
};

// What one document may take. An alias counts as much as what it stands for, and an anchor twice.
struct YamlLimits {
  size_t bytes = size_t{16} << 20;  // of the file
  int64_t nodes = 2'000'000;
  int64_t text_bytes = int64_t{64} << 20;  // of scalars
  int depth = 64;
  std::chrono::nanoseconds time = std::chrono::seconds(20);  // of a processor
};

// One document. A character beyond U+FFFF may be escaped as in JSON, too, as two. Throws Fault for text that is not
// YAML in UTF-8, holds several documents, or is beyond a limit.
YamlNode ParseYaml(std::string_view text, const YamlLimits& limits = {});

// A scalar, list or map as JSON. A repeated key is appended to `faults`.
Json ToJsonValue(const YamlNode& node, std::vector<Fault>& faults);

// How to call a node in a message: "a list", "a mapping", "\"8\"".
std::string Describe(const YamlNode& node);

// "file:line:column: message", in one line and no longer than a person reads.
std::string FaultText(const std::filesystem::path& file, const Fault& fault);

// Throws one Error(kInvalidInput) with every fault on a line, sorted by place, and `hint`.
[[noreturn]] void ThrowFaults(const std::filesystem::path& file, std::vector<Fault> faults, const std::string& hint);

}  // namespace ridgeline
