// Models that a sweep names by their Hugging Face config.json: `model: path/config.json`.
#pragma once

#include <filesystem>
#include <vector>

#include "yaml/yaml.h"

namespace ridgeline::sweep {

// Replaces `model: FILE.json` under `defaults` and `set` by the shape in that file, so that the sweep no longer needs
// the file. Fields of the shape that the section itself sets stay. A path under `defaults` is relative to `folder`, one
// under `set` to the current folder. A name without a file stays: it may be a model of another trainer. Returns whether
// it replaced anything.
bool ReplaceModelFiles(yaml::YamlNode& root, const std::filesystem::path& folder, std::vector<yaml::Fault>& faults);

}  // namespace ridgeline::sweep
