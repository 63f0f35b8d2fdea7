// Reads what files in devices/ and frameworks/ have in common: texts, lists, and figures with the names of their
// sources.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ridgeline/amount.h"
#include "yaml/common_mistakes.h"
#include "yaml/entries.h"
#include "yaml/yaml.h"

namespace ridgeline::predict {

// Appends faults, with their places, to `faults`, and reads on.
class SourcedReader {
 public:
  std::vector<yaml::Fault> faults;

 protected:
  using Map = std::map<std::string, const yaml::YamlNode*>;

  void Wrong(const yaml::YamlNode& node, std::string message) { faults.push_back({node.place, std::move(message)}); }

  bool IsMap(const yaml::YamlNode& node, std::string_view key, std::string_view of_what = "");
  // Reads a text of one line. Empty if it is something else.
  std::string Words(const yaml::YamlNode& node, std::string_view key);
  std::vector<std::string> List(const yaml::YamlNode& node, std::string_view key);
  // Requires `name` to be the file's stem.
  void RequireName(const yaml::YamlNode& root, const Map& map, const std::string& stem);

  // Call this before any figure.
  void ReadSources(const yaml::YamlNode& node);
  // The text of the named source. Empty if there is none of that name.
  std::string SourceOf(const yaml::YamlNode& node);
  const yaml::Names& source_names() const { return source_names_; }

  // The keys of a figure; nothing if it is not a mapping. Missing keys are faults.
  std::optional<Map> FigureOf(const yaml::YamlNode& node, std::string_view what, std::span<const Unit> units,
                              const yaml::Names& more = {});
  // Reads an amount in one of these units, at least 0.
  std::optional<double> AmountOf(const yaml::YamlNode& node, std::string_view what, std::span<const Unit> units);
  static std::string TextOf(const yaml::YamlNode& node);

 private:
  std::map<std::string, std::string> sources_;
  yaml::Names source_names_;
};

// Splits "peaks.bf16" into "peaks" and "bf16".
inline std::string_view SectionOf(std::string_view figure) { return figure.substr(0, figure.find('.')); }
inline std::string_view KeyOf(std::string_view figure) { return figure.substr(figure.find('.') + 1); }

}  // namespace ridgeline::predict
