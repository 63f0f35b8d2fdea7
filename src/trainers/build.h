// A definition's trainer from another folder: an older or newer version of the same program.
#pragma once

#include <filesystem>

#include "trainers/definition.h"

namespace ridgeline::trainers {

// Returns the definition with its program taken from `folder`. It replaces the first file of the command that `folder`
// has, by its path relative to the definition's folder, or by its name. If the command names the file relative to
// `directory`, or names no file, `directory` becomes `folder`. Everything else stays. Throws Error(kUsage) if `folder`
// has no such file.
Trainer FromFolder(const Trainer& trainer, const std::filesystem::path& folder);

}  // namespace ridgeline::trainers
