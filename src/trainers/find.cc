#include "trainers/find.h"

#include <utility>

#include "base/user_folders.h"

namespace ridgeline {
namespace fs = std::filesystem;

std::vector<fs::path> TrainerFolders(std::vector<fs::path> own) {
  own.emplace_back("trainers");
  return FoldersOf("trainers", std::move(own));
}

std::vector<fs::path> FindTrainers(const std::vector<fs::path>& folders) { return NamedFiles(folders); }

fs::path FindTrainer(const std::string& name, const std::vector<fs::path>& folders) {
  return FindNamedFile("trainer", name, folders);
}

}  // namespace ridgeline
