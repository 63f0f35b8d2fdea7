#include "sweep/given.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "sweep/formula.h"
#include "yaml/common_mistakes.h"
#include "yaml/entries.h"

namespace ridgeline::sweep {
namespace {

yaml::YamlNode TextNode(std::string text, yaml::Place place) {
  yaml::YamlNode node;
  node.place = place;
  node.scalar = std::move(text);
  return node;
}

void MoveTo(const yaml::Place& place, yaml::YamlNode& node) {
  node.place = place;
  for (yaml::YamlNode& item : node.items) MoveTo(place, item);
  for (yaml::YamlEntry& entry : node.entries) {
    MoveTo(place, entry.key);
    MoveTo(place, entry.value);
  }
}

yaml::YamlNode* ValueIn(yaml::YamlNode& map, std::string_view name) {
  const auto it =
      std::ranges::find_if(map.entries, [&](const yaml::YamlEntry& entry) { return entry.key.scalar == name; });
  return it == map.entries.end() ? nullptr : &it->value;
}

// Returns the section of this name, and adds it if there is none.
yaml::YamlNode& SectionOf(yaml::YamlNode& root, const std::string& name, const yaml::Place& place) {
  if (yaml::YamlNode* section = ValueIn(root, name)) return *section;
  yaml::YamlNode map;
  map.kind = yaml::YamlNode::Kind::kMap;
  map.place = place;
  root.entries.push_back({TextNode(name, place), std::move(map)});
  return root.entries.back().value;
}

// Reads "batch_size=1,8" as an entry; with `compares`, also "batch_size<8".
yaml::YamlEntry EntryOf(const std::string& given, bool compares, const yaml::Place& place) {
  const char* const option = compares ? "--only" : "-S";
  const size_t sign = given.find_first_of(compares ? "=<>!" : "=");
  const std::string name(Trim(given.substr(0, sign)));
  if (sign == std::string::npos || name.empty()) {
    throw Error(ErrorKind::kUsage, fmt::format("{} {}: it is of the form field=value", option, given),
                fmt::format("such as {} batch_size=8 or {} batch_size=1,8", option, option));
  }
  const std::string value(Trim(given.substr(given[sign] == '=' ? sign + 1 : sign)));
  if (compares && given[sign] != '=') return {TextNode(name, place), TextNode(value, place)};
  if (IsFormula(TextNode(value, place))) return {TextNode(name, place), TextNode(value, place)};
  try {
    yaml::YamlNode list = yaml::ParseYaml("[" + value + "\n]");
    if (list.kind != yaml::YamlNode::Kind::kList || list.items.empty()) throw yaml::Fault{};
    yaml::YamlNode node = list.items.size() == 1 ? std::move(list.items.front()) : std::move(list);
    MoveTo(place, node);
    return {TextNode(name, place), std::move(node)};
  } catch (const yaml::Fault&) {
    throw Error(ErrorKind::kUsage, fmt::format("{} {}: '{}' is not a value", option, given, value),
                "give one value, several with commas between them, or a range such as 1..64*2; quote other signs");
  }
}

// Adds the only --only that is a formula. Returns false if none is one.
bool AddFormula(yaml::YamlNode& root, const std::vector<std::string>& given, const yaml::Place& place) {
  const auto formula =
      std::ranges::find_if(given, [&](const std::string& each) { return IsFormula(TextNode(each, place)); });
  if (formula == given.end()) return false;
  if (given.size() > 1 || ValueIn(root, "only") != nullptr) {
    throw Error(ErrorKind::kUsage, fmt::format("--only {}: a formula is the only condition", *formula),
                "write the other conditions into the formula, with `and`");
  }
  root.entries.push_back({TextNode("only", place), TextNode(*formula, place)});
  return true;
}

void AddTo(yaml::YamlNode& root, const std::string& name, const std::vector<std::string>& given,
           const yaml::Place& place) {
  if (given.empty() || (name == "only" && AddFormula(root, given, place))) return;
  yaml::YamlNode& section = SectionOf(root, name, place);
  if (IsFormula(section)) {
    throw Error(ErrorKind::kUsage,
                fmt::format("--only {}: the file's `only` is a formula, to which it cannot be added", given.front()),
                "write the condition into the formula, with `and`");
  }
  if (section.kind != yaml::YamlNode::Kind::kMap) return;  // its reader reports the fault
  std::vector<std::string> named;
  for (const std::string& each : given) {
    yaml::YamlEntry entry = EntryOf(each, name == "only", place);
    const auto field = entry.key.scalar.get<std::string>();
    if (std::ranges::find(named, field) != named.end()) {
      throw Error(ErrorKind::kUsage, fmt::format("{} is given twice", field),
                  fmt::format("give all of its values at once: {}=1,8", field));
    }
    named.push_back(field);
    std::erase_if(section.entries, [&](const yaml::YamlEntry& known) { return known.key.scalar == field; });
    section.entries.push_back(std::move(entry));
  }
}

// The node as YAML on one line.
std::string FlowText(const yaml::YamlNode& node) {
  if (node.kind == yaml::YamlNode::Kind::kScalar) return DumpJson(node.scalar);
  std::vector<std::string> parts;
  for (const yaml::YamlNode& item : node.items) parts.push_back(FlowText(item));
  for (const auto& [key, value] : node.entries) parts.push_back(FlowText(key) + ": " + FlowText(value));
  return node.kind == yaml::YamlNode::Kind::kList ? "[" + Join(parts, ", ") + "]" : "{" + Join(parts, ", ") + "}";
}

// The sections that set fields of all points, and the prefix that they omit from the names of fields.
constexpr std::pair<std::string_view, std::string_view> kShared[] = {
    {"defaults", ""}, {"measure", ""}, {"init", "init_"}};

bool IsOneValue(const yaml::YamlNode& node) {
  const bool is_range =
      node.kind == yaml::YamlNode::Kind::kScalar && node.scalar.is_string() &&
      node.scalar.get_ref<const std::string&>().find("..") != std::string::npos &&
      node.scalar.get_ref<const std::string&>().find_first_not_of("0123456789.eE+-* ") == std::string::npos;
  return node.kind != yaml::YamlNode::Kind::kList && !is_range;
}

// Sets an axis of a `zip` group. One value stands for all positions of the group.
void PutIntoGroup(const yaml::YamlNode& value, yaml::YamlNode& at) {
  if (!IsOneValue(value) || at.kind != yaml::YamlNode::Kind::kList) {
    at = value;
    return;
  }
  for (yaml::YamlNode& item : at.items) item = value;
  at.place = value.place;
}

bool PutIntoAxes(const std::string& field, const yaml::YamlNode& value, yaml::YamlNode& root) {
  if (yaml::YamlNode* matrix = ValueIn(root, "matrix")) {
    if (yaml::YamlNode* axis = ValueIn(*matrix, field)) {
      *axis = value;
      return true;
    }
  }
  yaml::YamlNode* zip = ValueIn(root, "zip");
  if (zip == nullptr) return false;
  if (yaml::YamlNode* axis = ValueIn(*zip, field)) {
    PutIntoGroup(value, *axis);
    return true;
  }
  for (yaml::YamlNode& group : zip->items) {
    if (yaml::YamlNode* axis = ValueIn(group, field)) {
      PutIntoGroup(value, *axis);
      return true;
    }
  }
  return false;
}

void PutIntoAll(const std::string& field, const yaml::YamlEntry& entry, yaml::YamlNode& root) {
  for (const auto& shared : kShared) {
    const auto section = shared.first;
    const auto prefix = shared.second;
    yaml::YamlNode* map = ValueIn(root, section);
    if (map == nullptr || !field.starts_with(prefix)) continue;
    std::erase_if(map->entries,
                  [&](const yaml::YamlEntry& known) { return known.key.scalar == field.substr(prefix.size()); });
  }
  const bool is_one = IsOneValue(entry.value);
  SectionOf(root, is_one ? "defaults" : "matrix", entry.key.place).entries.push_back(entry);
}

// grad_accumulation and global_batch set the same field of a point: one takes the place of the other.
void RenameTwin(const std::string& field, yaml::YamlNode& node) {
  constexpr std::string_view kTwins[] = {"global_batch", "grad_accumulation"};
  if (field != kTwins[0] && field != kTwins[1]) return;
  for (yaml::YamlNode& item : node.items) RenameTwin(field, item);
  for (yaml::YamlEntry& entry : node.entries) {
    if (entry.key.scalar == kTwins[field == kTwins[0] ? 1 : 0]) entry.key.scalar = field;
  }
}

void DropFromInclude(const std::string& field, yaml::YamlNode& root) {
  yaml::YamlNode* include = ValueIn(root, "include");
  if (include == nullptr) return;
  for (yaml::YamlNode& item : include->items) {
    std::erase_if(item.entries, [&](const yaml::YamlEntry& entry) { return entry.key.scalar == field; });
  }
  std::erase_if(include->items, [](const yaml::YamlNode& item) {
    return item.kind == yaml::YamlNode::Kind::kMap && item.entries.empty();
  });
}

}  // namespace

void AddGiven(const Given& given, yaml::YamlNode& root) {
  if (root.kind != yaml::YamlNode::Kind::kMap) return;
  AddTo(root, "set", given.set, yaml::kPlaceOfSet);
  AddTo(root, "only", given.only, yaml::kPlaceOfOnly);
}

std::string TextWithGiven(std::string_view text, const Given& given, const yaml::YamlNode& root) {
  if (given.empty()) return std::string(text);
  std::string appended(text);
  if (!appended.ends_with('\n')) appended += '\n';
  appended += "# Given on the command line:\n";
  for (const auto& [key, value] : root.entries) {
    if (value.place.line <= 0) appended += key.scalar.get<std::string>() + ": " + FlowText(value) + "\n";
  }
  // Nothing can follow a root in braces or the end of a document, and an existing section has changed.
  try {
    if (FlowText(yaml::ParseYaml(appended)) == FlowText(root)) return appended;
  } catch (const yaml::Fault&) {  // NOLINT(bugprone-empty-catch): written again below
  }
  return SweepText(root);
}

std::string GivenIn(std::string_view text) {
  std::string given;
  try {
    for (const auto& [key, value] : yaml::ParseYaml(text).entries) {
      if (key.scalar != "set" && key.scalar != "only") continue;
      given += fmt::format("{}{}: {}", given.empty() ? "" : ", ", key.scalar.get<std::string>(), FlowText(value));
    }
  } catch (const yaml::Fault&) {  // NOLINT(bugprone-empty-catch): nothing is known of such a text
  }
  return given;
}

std::string SweepText(const yaml::YamlNode& root) { return FlowText(root) + "\n"; }

void ApplySet(yaml::YamlNode& root, std::vector<yaml::Fault>& faults) {
  const auto set =
      std::ranges::find_if(root.entries, [](const yaml::YamlEntry& entry) { return entry.key.scalar == "set"; });
  if (set == root.entries.end()) return;
  const yaml::YamlNode values = std::move(set->value);
  root.entries.erase(set);
  if (values.kind != yaml::YamlNode::Kind::kMap) {
    faults.push_back({values.place, yaml::NotAMapping("set is a mapping of fields", values)});
    return;
  }
  if (yaml::Entries(values, "field", {}, faults).size() != values.entries.size()) return;
  for (const yaml::YamlEntry& entry : values.entries) {
    const auto field = entry.key.scalar.get<std::string>();
    for (const char* section : {"defaults", "matrix", "zip", "include"}) {
      if (yaml::YamlNode* node = ValueIn(root, section)) RenameTwin(field, *node);
    }
    if (PutIntoAxes(field, entry.value, root)) continue;
    PutIntoAll(field, entry, root);
    DropFromInclude(field, root);
  }
}

}  // namespace ridgeline::sweep
