// YAML, through yaml-cpp: a plain tree in which every node knows its place.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "sweep/sweep.h"

namespace ridgeline {

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

// One document. Throws Fault for text that is not YAML, holds several documents, or unfolds (by aliases) into more
// than two million nodes.
YamlNode ParseYaml(std::string_view text);

// A scalar, list or map as JSON. A repeated key is appended to `faults`.
Json ToJsonValue(const YamlNode& node, std::vector<Fault>& faults);

// How to call a node in a message: "a list", "a mapping", "\"8\"".
std::string Describe(const YamlNode& node);

}  // namespace ridgeline
