// Amazon SageMaker's place for checkpoint files.
#pragma once

#include <filesystem>
#include <string_view>

#include "ridgeline/run.h"

namespace ridgeline {

// Where the spec names no checkpoint_dir, we run on SageMaker and /opt/ml/checkpoints is there (SageMaker copies it to
// S3 and back), that is the spec's from here on, or `folder` below it where several runs share a container. `root` is
// "/" but in tests.
void UseSageMakerCheckpointDir(std::string_view folder, RunSpec& spec, const std::filesystem::path& root = "/");

}  // namespace ridgeline
