// Profiles: a launcher's settings in a file of their own, for what many sweeps share, such as a cluster's network.
//
// `profile: NAME` in the launcher's mapping names a file that ships with Ridgeline, profiles/LAUNCHER/NAME.yaml. A
// path, `profile: ./NAME.yaml`, names your own file, relative to the sweep's file. A list names several; later ones
// override earlier ones.
#pragma once

#include <filesystem>
#include <optional>

#include "base/files.h"
#include "sweep/sweep.h"

namespace ridgeline::sweep {

// Replaces `profile` by the file's settings, in the mapping of the sweep's launcher and in those of its rules. The
// mapping's own settings override the file's: mappings are merged by key, null removes a key, a list is replaced.
// `shipped` has a folder for each launcher. Throws one Error(kInvalidInput) that names every profile that does not
// exist or is invalid, a line each.
void UseProfiles(Sweep& sweep, const std::optional<std::filesystem::path>& shipped = FindDataDir("profiles"));

}  // namespace ridgeline::sweep
