// Where definitions of trainers lie, and which a name means.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace ridgeline {

// Where they are looked for, in order: `own`, trainers/ of the current folder, the user's configuration
// (base/user_folders.h), what ships.
std::vector<std::filesystem::path> TrainerFolders(std::vector<std::filesystem::path> own);

// NAME.yaml of each name, the first folder's that has one, sorted by name. A file that is plainly no definition, such
// as a sweep with the same name, is not taken for one.
std::vector<std::filesystem::path> FindTrainers(const std::vector<std::filesystem::path>& folders);

// In the first folder that has any of them: the file of that name, else the highest release of it that is a number:
// of `torchtitan` torchtitan@0.10 before torchtitan@0.9.1, and never torchtitan@main; of `torchtitan@0.9`
// torchtitan@0.9.1. Throws Error(kUsage) with the releases that there are, or the nearest name, where there is none.
std::filesystem::path FindTrainer(const std::string& name, const std::vector<std::filesystem::path>& folders);

}  // namespace ridgeline
