#include "sweep/sweep_trainers.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "run/parallelism.h"
#include "trainers/build.h"
#include "trainers/find.h"

namespace ridgeline::sweep {
namespace {

// Collects the values of all fields named `trainer` in one of a sweep's sections, at any depth.
void CollectNames(const yaml::YamlNode& node, std::vector<const yaml::YamlNode*>& names) {
  for (const yaml::YamlNode& item : node.items) CollectNames(item, names);
  for (const auto& [key, value] : node.entries) {
    if (key.scalar != "trainer") continue;
    if (value.kind == yaml::YamlNode::Kind::kScalar) names.push_back(&value);
    for (const yaml::YamlNode& item : value.items) names.push_back(&item);
  }
}

}  // namespace

SweepTrainers::SweepTrainers() {
  for (const Field& field : Fields()) field_names_.emplace_back(field.name);
  field_names_.emplace_back(GlobalBatch().name);
}

SweepTrainers::SweepTrainers(const yaml::YamlNode& root, const std::vector<std::filesystem::path>& folders,
                             std::vector<yaml::Fault>& faults)
    : SweepTrainers() {
  std::vector<const yaml::YamlNode*> names;
  for (const auto& [section, value] : root.entries) {
    if (section.scalar == "defaults" || section.scalar == "matrix" || section.scalar == "zip" ||
        section.scalar == "include") {
      CollectNames(value, names);
    }
  }
  for (const yaml::YamlNode* name : names) {
    if (!name->scalar.is_string() || name->scalar == kOurTrainer) continue;
    names_others_ = true;
    if (!Find(name->scalar.get<std::string>())) {
      Add(*name, folders, faults);
    }
  }
}

void SweepTrainers::Add(const yaml::YamlNode& node, const std::vector<std::filesystem::path>& folders,
                        std::vector<yaml::Fault>& faults) {
  const auto name = node.scalar.get<std::string>();
  std::filesystem::path file;
  try {
    file = trainers::FindTrainer(name, folders);
  } catch (const Error& e) {
    faults.push_back({node.place, e.message()});
    return;
  }
  auto trainer = std::make_shared<const trainers::Trainer>(trainers::LoadTrainer(file));
  if (!trainer->invocation) {
    faults.push_back({node.place, fmt::format("trainer {}: {} has no `command`: it can read logs, and start nothing",
                                              name, file.string())});
    return;
  }
  for (const auto& own : trainer->invocation->fields) {
    const Field* known = FieldOf(own->name);
    if (known == nullptr) {
      field_names_.push_back(own->name);
    } else if (known->type() != own->field.type()) {
      faults.push_back({node.place, fmt::format("{} is {} to trainer {}, and {} to another of this sweep", own->name,
                                                own->field.type(), name, known->type())});
    }
  }
  trainers_.emplace(name, std::move(trainer));
}

std::shared_ptr<const trainers::Trainer> SweepTrainers::Find(std::string_view name) const {
  const auto it = trainers_.find(name);
  return it == trainers_.end() ? nullptr : it->second;
}

void SweepTrainers::AddSettings(std::vector<std::shared_ptr<const trainers::OwnField>> settings) {
  settings_ = std::move(settings);
  for (const auto& setting : settings_) field_names_.push_back(setting->name);
}

void SweepTrainers::TakeFrom(const std::filesystem::path& folder, std::string_view name) {
  const auto it = trainers_.find(name);
  if (it != trainers_.end())
    it->second = std::make_shared<const trainers::Trainer>(trainers::FromFolder(*it->second, folder));
}

void SweepTrainers::Keep(const std::filesystem::path& folder) const {
  if (!trainers_.empty()) MakeDirs(folder);
  // Under the sweep's names for them, so that it finds the same definitions again.
  for (const auto& [name, trainer] : trainers_) WriteFileAtomic(folder / (name + ".yaml"), trainer->text);
}

const Field* SweepTrainers::FieldOf(std::string_view name) const {
  if (const Field* field = FindField(name)) return field;
  for (const auto& [asked, trainer] : trainers_) {
    if (const Field* own = trainer->invocation->FindOwn(name)) return own;
  }
  for (const auto& setting : settings_) {
    if (setting->name == name) return &setting->field;
  }
  return name == GlobalBatch().name ? &GlobalBatch() : nullptr;
}

int64_t SweepTrainers::DataParallelRanksOf(const RunSpec& spec) const {
  const auto trainer = Find(spec.trainer);
  return trainer ? DataParallelRanks(*trainer, spec) : DataParallelRanks(spec);
}

PointValues SweepTrainers::ValuesOf(const RunSpec& spec) const {
  const auto data_parallel = [this, &spec] { return DataParallelRanksOf(spec); };
  return {[&spec, data_parallel](const Field& field) -> std::optional<FieldValue> {
            if (&field != &GlobalBatch()) return ValueOf(spec, field);
            return spec.batch_size * spec.grad_accumulation * data_parallel();
          },
          data_parallel};
}

void SweepTrainers::Canonicalize(RunSpec& spec) const {
  if (const auto trainer = Find(spec.trainer)) {
    trainers::CanonicalizeOwn(*trainer->invocation, spec);
  } else {
    spec.own = SettingsAlone(std::move(spec.own));
  }
}

std::vector<Problem> SweepTrainers::WhyRefused(const RunSpec& spec) const {
  const auto trainer = Find(spec.trainer);
  if (!trainer) return {};
  return trainers::WhyRefused(trainer->name, *trainer->invocation, spec);
}

}  // namespace ridgeline::sweep
