#include "slurm/journal.h"

#include <algorithm>
#include <utility>

namespace ridgeline::slurm {
namespace {

using plugin::Json;

Json Encode(const Array& array) {
  return {{"name", array.name},
          {"keys", array.keys},
          {"is_array", array.is_array},
          {"id", array.id},
          {"recorded_unix_s", array.recorded_unix_s},
          {"cancelled", array.cancelled},
          {"job_name", array.job_name},
          {"twins", array.twins},
          {"submitted_unix_s", array.submitted_unix_s}};
}

Array Decode(const Json& document) {
  return {document.at("name").get<std::string>(),        document.at("keys").get<std::vector<std::string>>(),
          document.at("is_array").get<bool>(),           document.at("id").get<int64_t>(),
          document.at("recorded_unix_s").get<int64_t>(), document.at("cancelled").get<std::set<size_t>>(),
          document.at("job_name").get<std::string>(),    document.at("twins").get<std::set<int64_t>>(),
          document.at("submitted_unix_s").get<int64_t>()};
}

}  // namespace

Journal::Journal(const std::filesystem::path& state_dir)
    : folder_(state_dir / "arrays", "it names jobs in Slurm; cancel those by hand, then remove it") {
  for (const std::string& name : folder_.Names()) {
    if (auto array = folder_.Read(name, Decode)) Keep(std::move(*array));
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

const Array* Journal::FindIf(const std::function<bool(const Array&)>& is) const {
  const auto it = std::find_if(arrays_.begin(), arrays_.end(), [&](const auto& entry) { return is(entry.second); });
  return it == arrays_.end() ? nullptr : &it->second;
}

Array& Journal::Record(Array array) {
  folder_.Write(array.name, Encode(array));
  return Keep(std::move(array));
}

void Journal::SetId(Array& array, int64_t id) {
  Array changed = array;
  changed.id = id;
  Replace(array, std::move(changed));
}

void Journal::AddCancelled(Array& array, const std::set<size_t>& tasks) {
  Array changed = array;
  changed.cancelled.insert(tasks.begin(), tasks.end());
  Replace(array, std::move(changed));
}

void Journal::AddTwin(Array& array, int64_t id) {
  if (array.twins.contains(id)) return;
  Array changed = array;
  changed.twins.insert(id);
  Replace(array, std::move(changed));
}

void Journal::SetSubmitted(Array& array, int64_t unix_s) {
  Array changed = array;
  changed.submitted_unix_s = unix_s;
  Replace(array, std::move(changed));
}

void Journal::Forget(const std::string& name) {
  folder_.Remove(name);
  for (const std::string& key : arrays_.at(name).keys) places_.erase(key);
  arrays_.erase(name);
}

void Journal::Replace(Array& array, Array changed) {
  folder_.Write(array.name, Encode(changed));
  array = std::move(changed);
}

Array& Journal::Keep(Array array) {
  Array& kept = arrays_[array.name] = std::move(array);
  for (size_t task = 0; task < kept.keys.size(); ++task) places_[kept.keys[task]] = {&kept, task};
  return kept;
}

}  // namespace ridgeline::slurm
