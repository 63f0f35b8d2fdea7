#include "sweep/model_file.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "run/hugging_face.h"

namespace ridgeline::sweep {
namespace {
namespace fs = std::filesystem;

// The file that a value of `model` names, if it exists.
std::optional<fs::path> ModelFile(const yaml::YamlNode& value, const fs::path& folder) {
  if (!value.scalar.is_string()) return std::nullopt;
  const auto& name = value.scalar.get_ref<const std::string&>();
  std::error_code ec;
  if (!name.ends_with(".json") || !fs::is_regular_file(folder / name, ec)) return std::nullopt;
  return folder / name;
}

// Refuses files in the values of all axes called `model`, at any depth.
void RefuseOnAxes(const yaml::YamlNode& node, const fs::path& folder, std::vector<yaml::Fault>& faults) {
  for (const yaml::YamlNode& item : node.items) RefuseOnAxes(item, folder, faults);
  for (const auto& [key, value] : node.entries) {
    if (key.scalar != "model") continue;
    const bool is_file = ModelFile(value, folder).has_value();
    const auto item =
        std::ranges::find_if(value.items, [&](const yaml::YamlNode& i) { return ModelFile(i, folder).has_value(); });
    if (is_file || item != value.items.end()) {
      faults.push_back({is_file ? value.place : item->place,
                        "a config.json names one model: put it under defaults, and make a sweep for each"});
    }
  }
}

// Removes all values of `model`, at any depth.
void EraseModels(yaml::YamlNode& node) {
  std::erase_if(node.entries, [](const yaml::YamlEntry& e) { return e.key.scalar == "model"; });
  for (yaml::YamlNode& item : node.items) EraseModels(item);
}

}  // namespace

bool ReplaceModelFiles(yaml::YamlNode& root, const fs::path& folder, std::vector<yaml::Fault>& faults) {
  bool replaced = false;
  bool of_set = false;
  for (auto& [section, map] : root.entries) {
    const fs::path& from = section.scalar == "set" ? fs::path() : folder;
    if (section.scalar == "matrix" || section.scalar == "zip" || section.scalar == "include") {
      RefuseOnAxes(map, from, faults);
    }
    if (section.scalar != "defaults" && section.scalar != "set") continue;
    const auto model =
        std::ranges::find_if(map.entries, [](const yaml::YamlEntry& e) { return e.key.scalar == "model"; });
    if (model == map.entries.end()) continue;
    const std::optional<fs::path> file = ModelFile(model->value, from);
    if (!file) {
      RefuseOnAxes(map, from, faults);
      continue;
    }
    const yaml::Place place = model->value.place;
    try {
      const Json shape = ReadShapeOfConfig(*file).value_or(Json::object());
      map.entries.erase(model);
      for (const auto& field : shape.items()) {
        const std::string& name = field.key();
        if (std::ranges::any_of(map.entries, [&](const yaml::YamlEntry& e) { return e.key.scalar == name; })) continue;
        yaml::YamlEntry entry;
        entry.key.place = entry.value.place = place;
        entry.key.scalar = name;
        entry.value.scalar = field.value();
        map.entries.push_back(std::move(entry));
      }
      replaced = true;
      of_set = of_set || section.scalar == "set";
    } catch (const Error& e) {
      faults.push_back({place, e.message()});
    }
  }
  // What `set` gives replaces what the sweep says.
  for (auto& [section, map] : root.entries) {
    if (of_set && section.scalar != "set") EraseModels(map);
  }
  return replaced;
}

}  // namespace ridgeline::sweep
