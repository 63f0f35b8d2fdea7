#include "sweep/entries.h"

#include <fmt/format.h>

#include "sweep/values.h"
#include "yaml/common_mistakes.h"

namespace ridgeline {

std::vector<FieldEntry> FieldEntries(const YamlNode& node, std::string_view section, const SweepTrainers& trainers,
                                     std::vector<Fault>& faults) {
  return FieldEntries(node, section, trainers, faults, trainers.field_names());
}

std::vector<FieldEntry> FieldEntries(const YamlNode& node, std::string_view section, const SweepTrainers& trainers,
                                     std::vector<Fault>& faults, const Names& known) {
  std::vector<FieldEntry> fields;
  if (node.kind != YamlNode::Kind::kMap) {
    faults.push_back({node.place, NotAMapping(fmt::format("{} is a mapping of fields", section), node)});
    return fields;
  }
  for (const auto& [name, value] : Entries(node, "field", known, faults)) {
    fields.emplace_back(trainers.FieldOf(name), value);
  }
  return fields;
}

std::vector<Condition> ReadConditions(const YamlNode& map, std::string_view section, const SweepTrainers& trainers,
                                      ValueCount& count, std::vector<Fault>& faults) {
  std::vector<Condition> conditions;
  if (IsFormula(map)) {
    Condition condition;
    condition.place = map.place;
    condition.formula = ReadFormula(map, /*is_condition=*/true, trainers, faults);
    if (condition.formula) conditions.push_back(std::move(condition));
    return conditions;
  }
  for (const auto& [field, value] : FieldEntries(map, section, trainers, faults)) {
    auto condition = ReadCondition(*field, *value, trainers, faults);
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
