#include "slurm/journal.h"

#include <utility>

#include <fmt/format.h>

#include "common/files.h"
#include "common/plugin_api.h"

namespace ridgeline::slurm {
namespace fs = std::filesystem;
namespace {

using plugin::Failure;
using plugin::Json;

std::string Encode(const Array& array) {
  const Json document = {{"name", array.name},
                         {"keys", array.keys},
                         {"is_array", array.is_array},
                         {"id", array.id},
                         {"recorded_unix_s", array.recorded_unix_s},
                         {"cancelled", array.cancelled}};
  return document.dump();
}

Array Decode(const fs::path& file) {
  try {
    const Json document = Json::parse(plugin::ReadText(file));
    return {document.at("name").get<std::string>(),        document.at("keys").get<std::vector<std::string>>(),
            document.at("is_array").get<bool>(),           document.at("id").get<int64_t>(),
            document.at("recorded_unix_s").get<int64_t>(), document.value("cancelled", std::set<size_t>())};
  } catch (const Json::exception& e) {
    throw Failure(Failure::Kind::kInfrastructure, fmt::format("{} cannot be read: {}", file.string(), e.what()),
                  "it names jobs in Slurm; cancel those by hand, then remove it");
  }
}

}  // namespace

Journal::Journal(const fs::path& state_dir) : dir_(state_dir / "arrays") {
  plugin::MakeDirs(dir_);
  for (const auto& entry : fs::directory_iterator(dir_)) {
    if (entry.path().extension() == ".json") Keep(Decode(entry.path()));
  }
}

Journal::Place Journal::Find(const std::string& key) const {
  const auto it = places_.find(key);
  return it == places_.end() ? Place() : it->second;
}

Array* Journal::FindArray(const std::string& name) {
  const auto it = arrays_.find(name);
  return it == arrays_.end() ? nullptr : &it->second;
}

Array& Journal::Record(Array array) {
  plugin::WriteTextSynced(FileOf(array.name), Encode(array));
  return Keep(std::move(array));
}

void Journal::SetId(Array& array, int64_t id) {
  Array changed = array;
  changed.id = id;
  Replace(array, std::move(changed));
}

void Journal::AddCancelled(Array& array, const std::vector<int64_t>& tasks) {
  Array changed = array;
  changed.cancelled.insert(tasks.begin(), tasks.end());
  Replace(array, std::move(changed));
}

void Journal::Forget(const std::string& name) {
  plugin::Remove(FileOf(name));
  for (const std::string& key : arrays_.at(name).keys) places_.erase(key);
  arrays_.erase(name);
}

void Journal::Replace(Array& array, Array changed) {
  plugin::WriteTextSynced(FileOf(array.name), Encode(changed));
  array = std::move(changed);
}

Array& Journal::Keep(Array array) {
  Array& kept = arrays_[array.name] = std::move(array);
  for (size_t task = 0; task < kept.keys.size(); ++task) places_[kept.keys[task]] = {&kept, task};
  return kept;
}

}  // namespace ridgeline::slurm
