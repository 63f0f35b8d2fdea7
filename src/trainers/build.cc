#include "trainers/build.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "yaml/yaml.h"

namespace ridgeline::trainers {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kBegin = "{{";
constexpr std::string_view kEnd = "}}";
constexpr std::string_view kStandard = "| default: ";

// Writes the tree as YAML in the form that is nearly JSON. Keys that are no text stay so.
std::string YamlText(const yaml::YamlNode& node) {
  std::string text;
  switch (node.kind) {
    case yaml::YamlNode::Kind::kScalar:
      return DumpJson(node.scalar);
    case yaml::YamlNode::Kind::kList:
      for (const yaml::YamlNode& item : node.items) text += (text.empty() ? "" : ", ") + YamlText(item);
      return '[' + text + ']';
    case yaml::YamlNode::Kind::kMap:
      for (const auto& [key, value] : node.entries) {
        text += (text.empty() ? "" : ", ") + YamlText(key) + ": " + YamlText(value);
      }
      return '{' + text + '}';
  }
  return text;
}

yaml::YamlNode* EntryOf(yaml::YamlNode& root, std::string_view key) {
  for (auto& [name, value] : root.entries) {
    if (name.scalar == key) return &value;
  }
  return nullptr;
}

bool IsTemplate(std::string_view text) { return text.find(kBegin) != std::string_view::npos; }

// Returns the path of the file that an item of a command names. For {{env.HOME}}/bin/x, whose folder is a value, it is
// bin/x. For a value, it is the value's default. Returns nothing if the item is no path, or contains values.
std::optional<fs::path> PathIn(const yaml::YamlNode& item) {
  if (!item.scalar.is_string()) return std::nullopt;
  auto text = item.scalar.get<std::string>();
  if (text.starts_with(kBegin)) {
    const size_t end = text.find(kEnd);
    const size_t standard = text.find(kStandard);
    if (end != std::string::npos && text.find('/', end) == end + kEnd.size()) {
      text.erase(0, end + kEnd.size() + 1);
    } else if (end + kEnd.size() == text.size() && standard < end) {
      text = text.substr(standard + kStandard.size(), end - standard - kStandard.size());
    } else {
      return std::nullopt;
    }
  }
  if (text.empty() || text.starts_with('-') || IsTemplate(text)) return std::nullopt;
  return fs::path(text).lexically_normal();
}

bool IsFile(const fs::path& path) {
  std::error_code ec;
  return fs::is_regular_file(path, ec);
}

}  // namespace

Trainer FromFolder(const Trainer& trainer, const fs::path& folder) {
  yaml::YamlNode root = yaml::ParseYaml(trainer.text);
  yaml::YamlNode* directory = EntryOf(root, "directory");
  yaml::YamlNode* command = EntryOf(root, "command");
  const std::string there = fs::absolute(folder).lexically_normal().string();
  const auto put = [](yaml::YamlNode& node, std::string text) {
    node.kind = yaml::YamlNode::Kind::kScalar;
    node.scalar = std::move(text);
  };
  std::vector<std::string> names;
  bool found = IsTemplate(there) || command == nullptr;
  for (size_t i = 0; !found && i < command->items.size(); ++i) {
    yaml::YamlNode& item = command->items[i];
    const std::optional<fs::path> path = PathIn(item);
    if (!path) continue;
    names.push_back(path->filename().string());
    const fs::path inside = path->is_absolute() ? path->filename() : *path;
    const std::optional<fs::path> file = IsFile(there / inside)             ? std::optional(there / inside)
                                         : IsFile(there / path->filename()) ? std::optional(there / path->filename())
                                                                            : std::nullopt;
    if (!file) continue;
    found = true;
    // A program without a folder is looked up along PATH, wherever it runs.
    const auto text = item.scalar.get<std::string>();
    const bool is_of_directory = directory != nullptr && !IsTemplate(text) && path->is_relative() &&
                                 (i > 0 || text.find('/') != std::string::npos) && *file == there / inside;
    if (is_of_directory) {
      put(*directory, there);
    } else {
      put(item, file->string());
    }
  }
  if (!found && directory != nullptr && directory->scalar.is_string() &&
      IsTemplate(directory->scalar.get<std::string>())) {
    put(*directory, there);
    found = true;
  }
  if (!found || IsTemplate(there)) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{} has nothing of what trainer {} starts: no {}", PrintableLine(there), trainer.name,
                            names.empty() ? "file that its command names" : Join(names, ", no ")),
                "name the folder of its programs or of its sources, as the other version has them");
  }
  Trainer other = ParseTrainer(YamlText(root), trainer.name + ".yaml");
  // The sweep's statements about its own fields apply to these, too.
  if (other.invocation && trainer.invocation) other.invocation->fields = trainer.invocation->fields;
  return other;
}

}  // namespace ridgeline::trainers
