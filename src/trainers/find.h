// Finds definitions of trainers by name.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace ridgeline::trainers {

// The folders with definitions, in the order of search: `own`, trainers/ in the current folder, the user's
// configuration (base/user_folders.h), the shipped ones.
std::vector<std::filesystem::path> TrainerFolders(std::vector<std::filesystem::path> own);

// Returns all definitions, sorted by name. If several folders have a file NAME.yaml, the first folder's counts. Skips
// files of other kinds, such as a sweep with the same name.
std::vector<std::filesystem::path> FindTrainers(const std::vector<std::filesystem::path>& folders);

// Finds the definition of a name, in the first folder that has one: the file of that name, else its highest numbered
// release. `torchtitan` finds torchtitan@0.10 before torchtitan@0.9.1, and never torchtitan@main; `torchtitan@0.9`
// finds torchtitan@0.9.1. Throws Error(kUsage) with the existing releases, or the nearest name, if there is none.
std::filesystem::path FindTrainer(const std::string& name, const std::vector<std::filesystem::path>& folders);

}  // namespace ridgeline::trainers
