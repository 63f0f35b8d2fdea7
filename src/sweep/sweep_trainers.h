// The trainers that a sweep names, and the fields that it has by them.
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
#include "trainers/definition.h"
#include "yaml/entries.h"
#include "yaml/yaml.h"

namespace ridgeline {

class SweepTrainers {
 public:
  SweepTrainers();

  // Those that the file's `trainer` fields name, but our own, each read from the first of `folders` that has it. What
  // is wrong with a name is appended to `faults`, at its place. Throws Error(kInvalidInput) for a definition that is
  // wrong, with its own file and lines.
  SweepTrainers(const YamlNode& root, const std::vector<std::filesystem::path>& folders, std::vector<Fault>& faults);

  // By the names that the sweep has for them: `torchtitan` may be the definition torchtitan@0.2.
  const std::map<std::string, std::shared_ptr<const Trainer>, std::less<>>& all() const { return trainers_; }
  std::shared_ptr<const Trainer> Find(std::string_view name) const;  // nullptr of our own

  // Whether the file names a trainer that is not ours, found or not: its points may have models that are only a name.
  bool names_others() const { return names_others_; }

  // The trainer of this name as `folder` has it (trainers/build.h). Throws Error(kUsage) where it has nothing of it.
  void TakeFrom(const std::filesystem::path& folder, std::string_view name);

  // Writes them into a folder, from which they are read as they are now.
  void Keep(const std::filesystem::path& folder) const;

  // A field of every point, or of one of the trainers; nullptr where there is none.
  const Field* FieldOf(std::string_view name) const;
  const Names& field_names() const { return field_names_; }

  // What the point's trainer adds to it: its own fields, and no others'.
  void Canonicalize(RunSpec& spec) const;
  // Why the point's trainer cannot run it; empty where it can.
  std::vector<Problem> WhyRefused(const RunSpec& spec) const;

 private:
  void Add(const YamlNode& node, const std::vector<std::filesystem::path>& folders, std::vector<Fault>& faults);

  std::map<std::string, std::shared_ptr<const Trainer>, std::less<>> trainers_;
  bool names_others_ = false;
  Names field_names_;
};

}  // namespace ridgeline
