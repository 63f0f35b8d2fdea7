// Amazon SageMaker's folder for checkpoint files.
#pragma once

#include <filesystem>
#include <string_view>

#include "ridgeline/run.h"

namespace ridgeline {

// Sets the spec's checkpoint_dir to /opt/ml/checkpoints, which SageMaker copies to S3 and back, if the spec names none,
// we run on SageMaker and that folder exists. If several runs share a container, sets it to `folder` below that. `root`
// is "/" except in tests.
void UseSageMakerCheckpointDir(std::string_view folder, RunSpec& spec, const std::filesystem::path& root = "/");

}  // namespace ridgeline
