// A definition's trainer as another folder has it: an older or a newer program of the same.
#pragma once

#include <filesystem>

#include "trainers/definition.h"

namespace ridgeline {

// The definition with what it starts taken from `folder`: the first file of its command that is there, by its path from
// the folder that the definition looks in, or by its name; that folder itself, its `directory`, where the file is named
// from there, or where it names none. All else is as it was. Throws Error(kUsage) where the folder has nothing of it.
Trainer FromFolder(const Trainer& trainer, const std::filesystem::path& folder);

}  // namespace ridgeline
