#include "base/user_folders.h"

#include <cstdlib>

namespace ridgeline {
namespace fs = std::filesystem;
namespace {

std::optional<fs::path> FolderIn(const char* variable, const char* beneath) {
  const char* value = std::getenv(variable);
  const fs::path folder = value == nullptr ? "" : value;
  if (folder.is_relative()) return std::nullopt;
  return folder / beneath;
}

}  // namespace

std::optional<fs::path> ConfigFolder() {
  const auto set = FolderIn("XDG_CONFIG_HOME", "ridgeline");
  return set ? set : FolderIn("HOME", ".config/ridgeline");
}

std::optional<fs::path> CacheFolder() {
  const auto set = FolderIn("XDG_CACHE_HOME", "ridgeline");
  return set ? set : FolderIn("HOME", ".cache/ridgeline");
}

}  // namespace ridgeline
