#include "trainers/find.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "base/user_folders.h"

namespace ridgeline {
namespace fs = std::filesystem;
namespace {

constexpr const char* kFolder = "trainers";

}  // namespace

std::vector<fs::path> TrainerFolders(std::vector<fs::path> own) {
  own.emplace_back(kFolder);
  if (const auto config = ConfigFolder()) own.push_back(*config / kFolder);
  if (auto installed = FindDataDir(kFolder)) own.push_back(*std::move(installed));
  return own;
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
  std::vector<std::string> places;
  for (const fs::path& folder : folders) places.push_back(folder.string());
  throw Error(ErrorKind::kUsage, "there is no trainer '" + name + "'" + DidYouMean(name, names),
              (names.empty() ? "there are none" : "the trainers are " + Join(names, ", ")) +
                  "; they are looked for in " + Join(places, ", "));
}

}  // namespace ridgeline
