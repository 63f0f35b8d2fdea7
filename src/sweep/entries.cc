#include "sweep/entries.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "sweep/values.h"
#include "yaml/slips.h"

namespace ridgeline {
namespace {

constexpr size_t kGuesses = 1000;  // of which names are meant: a file with more faults than that is no sweep

}  // namespace

const Names& FieldNames() {
  static const Names names = [] {
    Names result;
    for (const Field& field : Fields()) result.emplace_back(field.name);
    return result;
  }();
  return names;
}

std::vector<Entry> Entries(const YamlNode& map, std::string_view what, const Names& known, std::vector<Fault>& faults) {
  std::vector<Entry> entries;
  std::set<std::string> seen;
  for (const auto& [key, value] : map.entries) {
    if (!key.scalar.is_string()) {
      faults.push_back({key.place, fmt::format("the name of a {} must be text, not {}", what, Describe(key))});
      continue;
    }
    auto name = key.scalar.get<std::string>();
    if (!seen.insert(name).second) {
      faults.push_back({key.place, fmt::format("'{}' is given twice", name)});
    } else if (!known.empty() && std::find(known.begin(), known.end(), name) == known.end()) {
      const std::string meant = faults.size() < kGuesses ? DidYouMean(name, known) : "";
      faults.push_back(
          {key.place, fmt::format("unknown {} '{}'{}", what, name,
                                  meant.empty() && known.size() <= 12 ? "; known are " + Join(known, ", ") : meant)});
    } else {
      entries.emplace_back(std::move(name), &value);
    }
  }
  return entries;
}

std::vector<std::pair<const Field*, const YamlNode*>> FieldEntries(const YamlNode& node, std::string_view section,
                                                                   std::vector<Fault>& faults, const Names& known) {
  std::vector<std::pair<const Field*, const YamlNode*>> fields;
  if (node.kind != YamlNode::Kind::kMap) {
    faults.push_back({node.place, NotAMapping(fmt::format("{} is a mapping of fields", section), node)});
    return fields;
  }
  for (const auto& [name, value] : Entries(node, "field", known, faults)) fields.emplace_back(FindField(name), value);
  return fields;
}

std::vector<const YamlNode*> Mappings(const YamlNode& node, std::string_view section, bool lone,
                                      std::vector<Fault>& faults, std::string_view of) {
  std::vector<const YamlNode*> maps;
  if (lone && node.kind == YamlNode::Kind::kMap) return {&node};
  if (node.kind != YamlNode::Kind::kList) {
    faults.push_back({node.place, fmt::format("{} is a list of mappings, not {}", section, Describe(node))});
  }
  for (const YamlNode& item : node.items) {
    if (item.kind != YamlNode::Kind::kMap || item.entries.empty()) {
      faults.push_back({item.place, fmt::format("an entry of {} is a mapping of {}, not {}", section, of,
                                                item.kind == YamlNode::Kind::kMap ? "an empty one" : Describe(item))});
    } else {
      maps.push_back(&item);
    }
  }
  return maps;
}

std::vector<Condition> ReadConditions(const YamlNode& map, std::string_view section, ValueCount& count,
                                      std::vector<Fault>& faults) {
  std::vector<Condition> conditions;
  for (const auto& [field, value] : FieldEntries(map, section, faults)) {
    auto condition = ReadCondition(*field, *value, faults);
    if (!condition) continue;
    count.Add(condition->values.size(), condition->place);
    conditions.push_back(std::move(*condition));
  }
  return conditions;
}

void ReadWhole(const YamlNode& node, std::string_view name, int64_t min, int64_t max, int64_t& to,
               std::vector<Fault>& faults) {
  if (node.scalar.is_number_integer() && node.scalar >= min && node.scalar <= max) {
    to = node.scalar.get<int64_t>();
  } else {
    faults.push_back(
        {node.place, fmt::format("{} must be an integer between {} and {}, not {}", name, min, max, Describe(node))});
  }
}

}  // namespace ridgeline
