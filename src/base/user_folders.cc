#include "base/user_folders.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/files.h"
#include "base/folders.h"
#include "base/text.h"

namespace ridgeline {
namespace fs = std::filesystem;
namespace {

std::optional<fs::path> FolderIn(const char* variable, const char* beneath) {
  const char* value = std::getenv(variable);
  const fs::path folder = value == nullptr ? "" : value;
  if (folder.is_relative()) return std::nullopt;
  return folder / beneath;
}

// After `su`, or in a container, HOME may be another user's folder. Nothing there belongs to this user.
bool IsClosed(const fs::path& folder) { return ::access(folder.c_str(), R_OK | X_OK) != 0 && errno == EACCES; }

}  // namespace

std::optional<fs::path> ConfigFolder() {
  const auto set = FolderIn("XDG_CONFIG_HOME", "ridgeline");
  return set ? set : FolderIn("HOME", ".config/ridgeline");
}

std::optional<fs::path> CacheFolder() {
  const auto set = FolderIn("XDG_CACHE_HOME", "ridgeline");
  return set ? set : FolderIn("HOME", ".cache/ridgeline");
}

std::vector<fs::path> FoldersOf(const std::string& kind, std::vector<fs::path> own) {
  if (const auto config = ConfigFolder(); config && !IsClosed(*config / kind)) own.push_back(*config / kind);
  if (auto installed = FindDataDir(kind)) own.push_back(*std::move(installed));
  return own;
}

std::vector<fs::path> NamedFiles(const std::vector<fs::path>& folders, const IsOfKind& is_of_kind) {
  std::vector<fs::path> files;
  std::set<std::string> names;
  for (const fs::path& folder : folders) {
    ForEachEntry(folder, [&](const fs::directory_entry& entry) {
      const fs::path& file = entry.path();
      std::error_code ignored;
      if (file.extension() == ".yaml" && file.filename().string().front() != '.' && entry.is_regular_file(ignored) &&
          (!is_of_kind || is_of_kind(file)) && names.insert(file.stem().string()).second) {
        files.push_back(file);
      }
    });
  }
  std::sort(files.begin(), files.end(), [](const fs::path& a, const fs::path& b) { return a.stem() < b.stem(); });
  return files;
}

fs::path FindNamedFile(std::string_view what, const std::string& name, const std::vector<fs::path>& folders,
                       const IsOfKind& is_of_kind) {
  const auto is_it = [&](const fs::path& file) { return file.stem() == name && (!is_of_kind || is_of_kind(file)); };
  const std::vector<fs::path> found = NamedFiles(folders, is_it);
  if (!found.empty()) return found.front();
  std::vector<std::string> names;
  for (const fs::path& file : NamedFiles(folders, is_of_kind)) names.push_back(file.stem().string());
  throw NoneOfName(what, name, names, folders);
}

Error NoneOfName(std::string_view what, const std::string& name, const std::vector<std::string>& names,
                 const std::vector<fs::path>& folders) {
  std::vector<std::string> places;
  for (const fs::path& folder : folders) places.push_back(folder.string());
  return {ErrorKind::kUsage, fmt::format("there is no {} '{}'{}", what, name, DidYouMean(name, names)),
          (names.empty() ? "there are none" : fmt::format("the {}s are {}", what, Join(names, ", "))) +
              "; they are looked for in " + Join(places, ", ")};
}

}  // namespace ridgeline
