#include "trainers/find.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/user_folders.h"

namespace ridgeline {
namespace fs = std::filesystem;

std::vector<fs::path> TrainerFolders(std::vector<fs::path> own) {
  own.emplace_back("trainers");
  return FoldersOf("trainers", std::move(own));
}

std::vector<fs::path> FindTrainers(const std::vector<fs::path>& folders) {
  std::vector<fs::path> files;
  std::set<std::string> names;
  for (const fs::path& folder : folders) {
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(folder, none)) {
      const fs::path& file = entry.path();
      std::error_code ignored;
      if (file.extension() == ".yaml" && file.filename().string().front() != '.' && entry.is_regular_file(ignored) &&
          names.insert(file.stem().string()).second) {
        files.push_back(file);
      }
    }
  }
  std::sort(files.begin(), files.end(), [](const fs::path& a, const fs::path& b) { return a.stem() < b.stem(); });
  return files;
}

fs::path FindTrainer(const std::string& name, const std::vector<fs::path>& folders) {
  std::vector<std::string> names;
  for (const fs::path& file : FindTrainers(folders)) {
    if (file.stem() == name) return file;
    names.push_back(file.stem().string());
  }
  throw NoneOfName("trainer", name, names, folders);
}

}  // namespace ridgeline
