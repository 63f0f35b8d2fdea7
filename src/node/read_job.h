// Reads the job file that `ridgeline exec` gets.
#pragma once

#include <filesystem>

#include "run/job.h"

namespace ridgeline::node {

// The file may be a folder that holds it in parts, joined in the order of their names. `job_dir`: the job's folder, if
// it is not the one in the file. A job that names no trainer gets the one beside this program. Throws
// Error(kInvalidInput) if this is no job, or if the id of a point cannot be a file's name.
Job ReadJob(const std::filesystem::path& job_file, const std::filesystem::path& job_dir);

}  // namespace ridgeline::node
