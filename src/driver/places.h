// Files of a database's driver, found from the database alone, so that every command finds them.
#pragma once

#include <filesystem>
#include <string>

namespace ridgeline {

// Held by the one driver; its process id is written in it.
inline std::filesystem::path DriverLockFile(const std::filesystem::path& db) { return db.string() + ".lock"; }

// The folder a launcher keeps its own state in.
inline std::filesystem::path LauncherStateDir(const std::filesystem::path& db, const std::string& launcher) {
  return db.string() + ".launchers/" + launcher;
}

}  // namespace ridgeline
