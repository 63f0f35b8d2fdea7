#include "trainers/find.h"

#include <utility>

#include "base/user_folders.h"
#include "yaml/entries.h"

namespace ridgeline {
namespace fs = std::filesystem;
namespace {

// A sweep of torchtitan is often called torchtitan.yaml, too.
bool MayBeTrainer(const fs::path& file) {
  static const Names kKeys = {"name",   "about",   "version", "tested", "tested_on",
                              "result", "metrics", "ends",    "command"};
  return !IsOfAnotherKind(file, kKeys);
}

}  // namespace

std::vector<fs::path> TrainerFolders(std::vector<fs::path> own) {
  own.emplace_back("trainers");
  return FoldersOf("trainers", std::move(own));
}

std::vector<fs::path> FindTrainers(const std::vector<fs::path>& folders) { return NamedFiles(folders, MayBeTrainer); }

fs::path FindTrainer(const std::string& name, const std::vector<fs::path>& folders) {
  return FindNamedFile("trainer", name, folders, MayBeTrainer);
}

}  // namespace ridgeline
