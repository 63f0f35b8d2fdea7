#include "sweep/entries.h"

#include <fmt/format.h>

#include "sweep/values.h"
#include "yaml/common_mistakes.h"

namespace ridgeline::sweep {

std::vector<FieldEntry> FieldEntries(const yaml::YamlNode& node, std::string_view section,
                                     const SweepTrainers& trainers, std::vector<yaml::Fault>& faults) {
  return FieldEntries(node, section, trainers, faults, trainers.field_names());
}

std::vector<FieldEntry> FieldEntries(const yaml::YamlNode& node, std::string_view section,
                                     const SweepTrainers& trainers, std::vector<yaml::Fault>& faults,
                                     const yaml::Names& known) {
  std::vector<FieldEntry> fields;
  if (node.kind != yaml::YamlNode::Kind::kMap) {
    faults.push_back({node.place, yaml::NotAMapping(fmt::format("{} is a mapping of fields", section), node)});
    return fields;
  }
  for (const auto& [name, value] : yaml::Entries(node, "field", known, faults)) {
    fields.emplace_back(trainers.FieldOf(name), value);
  }
  return fields;
}

std::vector<Condition> ReadConditions(const yaml::YamlNode& map, std::string_view section,
                                      const SweepTrainers& trainers, ValueCount& count,
                                      std::vector<yaml::Fault>& faults) {
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

void ReadWhole(const yaml::YamlNode& node, std::string_view name, int64_t min, int64_t max, int64_t& to,
               std::vector<yaml::Fault>& faults) {
  if (node.scalar.is_number_integer() && node.scalar >= min && node.scalar <= max) {
    to = node.scalar.get<int64_t>();
  } else {
    faults.push_back({node.place, fmt::format("{} must be an integer between {} and {}, not {}", name, min, max,
                                              yaml::Describe(node))});
  }
}

}  // namespace ridgeline::sweep
