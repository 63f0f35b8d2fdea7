#include "sweep/setting_axes.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "run/spec.h"
#include "sweep/launch.h"

namespace ridgeline::sweep {
namespace {

constexpr std::string_view kEnvironment = "environment";

struct Uses {
  std::vector<yaml::YamlNode*> values;  // single values, of all lists
  yaml::Place place;
};

void CollectValues(yaml::YamlNode& node, Uses& uses) {
  if (node.kind == yaml::YamlNode::Kind::kScalar) uses.values.push_back(&node);
  for (yaml::YamlNode& item : node.items) uses.values.push_back(&item);
}

void CollectSettings(yaml::YamlNode& node, std::map<std::string, Uses>& settings) {
  for (yaml::YamlNode& item : node.items) CollectSettings(item, settings);
  for (auto& [key, value] : node.entries) {
    if (!key.scalar.is_string()) continue;
    const auto name = key.scalar.get<std::string>();
    if (!IsSettingName(name) || FindField(name) != nullptr) continue;
    Uses& uses = settings[name];
    if (uses.values.empty()) uses.place = key.place;
    CollectValues(value, uses);
  }
}

bool IsWhole(const yaml::YamlNode& value) {
  if (!value.scalar.is_string()) return value.scalar.is_number_integer();
  const auto& text = value.scalar.get_ref<const std::string&>();
  return text.find("..") != std::string::npos && text.find_first_not_of("0123456789.*+ ") == std::string::npos;
}

}  // namespace

std::vector<std::shared_ptr<const trainers::OwnField>> TakeSettingFields(yaml::YamlNode& root,
                                                                         std::vector<yaml::Fault>& faults) {
  std::map<std::string, Uses> settings;
  for (auto& [section, value] : root.entries) {
    static constexpr std::string_view kSections[] = {"defaults", "matrix", "zip", "include"};
    if (std::ranges::find(kSections, section.scalar) != std::end(kSections)) CollectSettings(value, settings);
  }
  std::vector<std::shared_ptr<const trainers::OwnField>> fields;
  for (auto& [name, uses] : settings) {
    const std::string_view group = std::string_view(name).substr(0, name.find('.'));
    const std::string_view key = std::string_view(name).substr(group.size() + 1);
    if (group != kEnvironment && !IsOfSetup(key)) {
      faults.push_back(
          {uses.place,
           fmt::format(
               "{} cannot be an axis: only a launcher's settings that change figures can ({}). Set it under launch",
               name, Join(SetupSettings(), ", "))});
    }
    const bool is_whole = std::ranges::all_of(uses.values, [](const yaml::YamlNode* value) { return IsWhole(*value); });
    for (yaml::YamlNode* value : uses.values) {
      if (!is_whole && value->scalar.is_number_integer()) value->scalar = value->scalar.dump();
    }
    auto own = std::make_shared<trainers::OwnField>();
    own->name = name;
    own->help = fmt::format("the setting {} of launch: {}", key, group);
    const FieldValue standard = is_whole ? FieldValue(int64_t{0}) : FieldValue(std::string());
    own->field = {own->name, OwnMember{standard}, own->help, {}, -9e15, 9e15};
    fields.push_back(std::move(own));
  }
  return fields;
}

void AddSettingRules(Sweep& sweep, std::vector<yaml::Fault>& faults) {
  std::set<std::pair<const Field*, FieldValue>> seen;
  std::vector<LaunchRule> rules;
  ForEachAssignment(sweep, [&](const Assignment& assignment) {
    const std::string name(assignment.field->name);
    if (!assignment.field->is_own() || !IsSettingName(name)) return;
    if (!seen.emplace(assignment.field, assignment.value).second) return;
    const auto text_node = [&](std::string text) {
      yaml::YamlNode node;
      node.place = assignment.place;
      node.scalar = std::move(text);
      return node;
    };
    yaml::YamlNode value = text_node({});
    value.scalar = std::visit([](const auto& v) { return Json(v); }, assignment.value);
    const size_t dot = name.find('.');
    const auto map_of = [&](const std::string& key, yaml::YamlNode inner) {
      yaml::YamlNode map;
      map.kind = yaml::YamlNode::Kind::kMap;
      map.place = assignment.place;
      map.entries.push_back({text_node(key), std::move(inner)});
      return map;
    };
    LaunchRule rule;
    rule.when.push_back({assignment.field, Condition::Op::kOneOf, {assignment.value}, nullptr, assignment.place});
    rule.place = assignment.place;
    rule.is_of_axis = true;
    ReadSetOfRule(map_of(name.substr(0, dot), map_of(name.substr(dot + 1), std::move(value))), sweep, rule.set, faults);
    rules.push_back(std::move(rule));
  });
  std::ranges::move(rules, std::back_inserter(sweep.rules));
}

}  // namespace ridgeline::sweep
