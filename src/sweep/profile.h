// Profiles: settings of a launcher in a file of their own, for what many sweeps say alike, such as a cluster's network.
//
// `profile: NAME` in the launcher's mapping stands for a file that ships with Ridgeline, profiles/LAUNCHER/NAME.yaml; a
// path, `profile: ./NAME.yaml`, for one of a person's own, beside the sweep's file; a list for several, of which a
// later one overrides those before it.
#pragma once

#include <filesystem>
#include <optional>

#include "base/files.h"
#include "sweep/sweep.h"

namespace ridgeline {

// Puts in place of `profile` what it stands for, in the mapping of the sweep's launcher and in those of its rules,
// under what that says itself: mappings are merged by their keys, null takes one away, a list is replaced. `shipped`
// holds a folder for each launcher. Throws Error(kInvalidInput) for a profile that there is not, or that is none.
void UseProfiles(Sweep& sweep, const std::optional<std::filesystem::path>& shipped = FindDataDir("profiles"));

}  // namespace ridgeline
