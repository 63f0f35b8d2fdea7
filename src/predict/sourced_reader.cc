#include "predict/sourced_reader.h"

#include <utility>

#include <fmt/format.h>

#include "base/text.h"

namespace ridgeline::predict {
namespace {

constexpr size_t kLongestLine = 1024;

std::string Example(std::span<const Unit> units) {
  return units.back().name.empty() ? "1" : fmt::format("1 {}", units.back().name);
}

}  // namespace

bool SourcedReader::IsMap(const yaml::YamlNode& node, std::string_view key, std::string_view of_what) {
  if (node.kind == yaml::YamlNode::Kind::kMap) return true;
  Wrong(node, fmt::format("{} is a mapping{}, not {}", key, of_what, yaml::Describe(node)));
  return false;
}

std::string SourcedReader::Words(const yaml::YamlNode& node, std::string_view key) {
  if (!node.scalar.is_string()) {
    Wrong(node, fmt::format("{} is text, not {}", key, yaml::Describe(node)));
    return {};
  }
  auto text = node.scalar.get<std::string>();
  if (text.empty() || text.size() > kLongestLine || text.find('\n') != std::string::npos) {
    Wrong(node, fmt::format("{} is one line of at most {} bytes, and not empty", key, kLongestLine));
    return {};
  }
  return text;
}

std::vector<std::string> SourcedReader::List(const yaml::YamlNode& node, std::string_view key) {
  std::vector<std::string> words;
  if (node.kind != yaml::YamlNode::Kind::kList) {
    Wrong(node, fmt::format("{} is a list, not {}", key, yaml::Describe(node)));
    return words;
  }
  for (const yaml::YamlNode& item : node.items) words.push_back(Words(item, key));
  return words;
}

void SourcedReader::RequireName(const yaml::YamlNode& root, const Map& map, const std::string& stem) {
  if (!map.contains("name")) {
    Wrong(root, "'name' is missing");
  } else if (const std::string name = Words(*map.at("name"), "name"); !name.empty() && name != stem) {
    Wrong(*map.at("name"), fmt::format("the name is '{}', and the file is called '{}': both are the same",
                                       ShortenToBytes(name, 80), stem));
  }
}

void SourcedReader::ReadSources(const yaml::YamlNode& node) {
  if (!IsMap(node, "sources", " of names to words")) return;
  for (const auto& [key, value] : yaml::Entries(node, "source", {}, faults)) {
    sources_[key] = Words(*value, "a source");
    source_names_.push_back(key);
  }
}

std::string SourcedReader::SourceOf(const yaml::YamlNode& node) {
  const std::string name = Words(node, "source");
  const auto found = sources_.find(name);
  if (found != sources_.end()) return found->second;
  if (!name.empty()) {
    Wrong(node, fmt::format("no source '{}' stands under sources{}", ShortenToBytes(name, 80),
                            DidYouMean(name, source_names_)));
  }
  return {};
}

std::optional<SourcedReader::Map> SourcedReader::FigureOf(const yaml::YamlNode& node, std::string_view what,
                                                          std::span<const Unit> units, const yaml::Names& more) {
  if (!IsMap(node, what, fmt::format(" of value and source, such as {{value: {}, source: …}}", Example(units)))) {
    return std::nullopt;
  }
  yaml::Names needed = {"value", "source"};
  needed.insert(needed.end(), more.begin(), more.end());
  yaml::Names keys = needed;
  keys.emplace_back("note");
  Map map;
  for (const auto& [key, value] : yaml::Entries(node, "key of a figure", keys, faults)) map.emplace(key, value);
  for (const std::string& key : needed) {
    if (!map.contains(key)) Wrong(node, fmt::format("{} has no '{}'", what, key));
  }
  return map;
}

std::string SourcedReader::TextOf(const yaml::YamlNode& node) {
  if (node.scalar.is_string()) return node.scalar.get<std::string>();
  return node.scalar.is_number() ? fmt::format("{}", node.scalar.get<double>()) : std::string();
}

std::optional<double> SourcedReader::AmountOf(const yaml::YamlNode& node, std::string_view what,
                                              std::span<const Unit> units) {
  const std::string text = TextOf(node);
  if (Trim(text).starts_with('-')) {
    Wrong(node, fmt::format("{} must not be negative", what));
    return std::nullopt;
  }
  const auto amount = ParseAmount(text, units);
  if (amount) return *amount;
  yaml::Names names;
  for (const Unit& unit : units) names.emplace_back(unit.name);
  Wrong(node, fmt::format("{} is {}, such as {}, not {}", what,
                          names.back().empty() ? "a number" : "a number of " + Join(names, ", "), Example(units),
                          yaml::Describe(node)));
  return std::nullopt;
}

}  // namespace ridgeline::predict
