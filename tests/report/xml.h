// A strict reader of pages and charts as XML: fails the test on anything that is not well-formed.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ridgeline::report {

struct Elements {
  std::vector<std::string> names;       // in order of their start tags
  std::vector<std::string> attributes;  // names of attributes, over all elements
  std::vector<std::string> ids;
  std::vector<std::string> references;  // from url(#…), href="#…", aria-labelledby
  // A <text>, <rect> or <path>: its attributes, and the characters inside.
  struct Shape {
    std::string name;
    std::vector<std::pair<std::string, std::string>> attributes;
    std::string text;
    std::string Attribute(std::string_view key) const {
      for (const auto& [name, value] : attributes) {
        if (name == key) return value;
      }
      return {};
    }
    double Number(std::string_view key) const {
      const std::string value = Attribute(key);
      return value.empty() ? 0 : std::stod(value);
    }
  };
  std::vector<Shape> shapes;

  size_t Count(std::string_view name) const {
    return static_cast<size_t>(std::count(names.begin(), names.end(), name));
  }
};

Elements ParseXml(std::string_view text);

}  // namespace ridgeline::report
