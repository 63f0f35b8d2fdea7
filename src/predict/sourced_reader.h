// What files of devices/ and frameworks/ have in common: words, lists, and figures, each with the source that it names.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ridgeline/amount.h"
#include "yaml/entries.h"
#include "yaml/slips.h"
#include "yaml/yaml.h"

namespace ridgeline {

// Says what is wrong in `faults`, with its place, and reads on.
class SourcedReader {
 public:
  std::vector<Fault> faults;

 protected:
  using Map = std::map<std::string, const YamlNode*>;

  void Wrong(const YamlNode& node, std::string message) { faults.push_back({node.place, std::move(message)}); }

  bool IsMap(const YamlNode& node, std::string_view key, std::string_view of_what = "");
  // Text of one line; empty where it is something else.
  std::string Words(const YamlNode& node, std::string_view key);
  std::vector<std::string> List(const YamlNode& node, std::string_view key);
  // The file's stem, which `name` has to be.
  void RequireName(const YamlNode& root, const Map& map, const std::string& stem);

  // Before any figure.
  void ReadSources(const YamlNode& node);
  // The words of the source that is named; empty where there is none of that name.
  std::string SourceOf(const YamlNode& node);
  const Names& source_names() const { return source_names_; }

  // A figure's own keys; nothing where it is no mapping. Those that are missing are said.
  std::optional<Map> FigureOf(const YamlNode& node, std::string_view what, std::span<const Unit> units,
                              const Names& more = {});
  // An amount of these units, from 0.
  std::optional<double> AmountOf(const YamlNode& node, std::string_view what, std::span<const Unit> units);
  static std::string TextOf(const YamlNode& node);

 private:
  std::map<std::string, std::string> sources_;
  Names source_names_;
};

// "peaks" of "peaks.bf16", and "bf16".
inline std::string_view SectionOf(std::string_view figure) { return figure.substr(0, figure.find('.')); }
inline std::string_view KeyOf(std::string_view figure) { return figure.substr(figure.find('.') + 1); }

}  // namespace ridgeline
