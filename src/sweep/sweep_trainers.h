// The trainers that a sweep names, and the fields that they and its settings as axes (setting_axes.h) add.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ridgeline/run.h"
#include "run/fields.h"
#include "sweep/formula.h"
#include "trainers/definition.h"
#include "yaml/entries.h"
#include "yaml/yaml.h"

namespace ridgeline::sweep {

class SweepTrainers {
 public:
  SweepTrainers();

  // Reads the definitions that the file's `trainer` fields name, except our own trainer, each from the first of
  // `folders` that has it. Appends faulty names to `faults`, at their places. Throws Error(kInvalidInput) for a faulty
  // definition, with its own file and lines.
  SweepTrainers(const yaml::YamlNode& root, const std::vector<std::filesystem::path>& folders,
                std::vector<yaml::Fault>& faults);

  // By the sweep's names for them: `torchtitan` may be the definition torchtitan@0.2.
  const std::map<std::string, std::shared_ptr<const trainers::Trainer>, std::less<>>& all() const { return trainers_; }
  std::shared_ptr<const trainers::Trainer> Find(std::string_view name) const;  // nullptr for our own trainer

  // Whether the file names a trainer other than ours, found or not. Its points may then have models that are only a
  // name.
  bool names_others() const { return names_others_; }

  // Adds settings of `launch:` to the fields.
  void AddSettings(std::vector<std::shared_ptr<const trainers::OwnField>> settings);

  // Takes the trainer of this name from `folder` (trainers/build.h). Throws Error(kUsage) if the folder lacks it.
  void TakeFrom(const std::filesystem::path& folder, std::string_view name);

  // Writes the definitions into a folder, from which they can be read unchanged.
  void Keep(const std::filesystem::path& folder) const;

  // Returns a field of every point, or of one of the trainers, or GlobalBatch(); nullptr if there is none.
  const Field* FieldOf(std::string_view name) const;
  const yaml::Names& field_names() const { return field_names_; }

  // The point's ranks with batches of their own, as its trainer counts them. Throws Error(kInvalidInput) if the
  // trainer's formula has no value on the point.
  int64_t DataParallelRanksOf(const RunSpec& spec) const;
  // The values of a canonical spec, which must outlive them.
  PointValues ValuesOf(const RunSpec& spec) const;

  // Makes the spec's own fields canonical: those of the point's trainer, and no others.
  void Canonicalize(RunSpec& spec) const;
  // Returns why the point's trainer cannot run it; empty if it can.
  std::vector<Problem> WhyRefused(const RunSpec& spec) const;

 private:
  void Add(const yaml::YamlNode& node, const std::vector<std::filesystem::path>& folders,
           std::vector<yaml::Fault>& faults);

  std::map<std::string, std::shared_ptr<const trainers::Trainer>, std::less<>> trainers_;
  std::vector<std::shared_ptr<const trainers::OwnField>> settings_;
  bool names_others_ = false;
  yaml::Names field_names_;
};

}  // namespace ridgeline::sweep
