// The files of a database's driver. Their paths follow from the database's path alone, so every command finds them.
#pragma once

#include <filesystem>
#include <string>

namespace ridgeline::driver {

// Held by the one driver; contains its process id.
inline std::filesystem::path DriverLockFile(const std::filesystem::path& db) { return db.string() + ".lock"; }

// The folder where a launcher keeps its own state.
inline std::filesystem::path LauncherStateDir(const std::filesystem::path& db, const std::string& launcher) {
  return db.string() + ".launchers/" + launcher;
}

}  // namespace ridgeline::driver
