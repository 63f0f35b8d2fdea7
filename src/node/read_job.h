// The job file, as `ridgeline exec` is given it.
#pragma once

#include <filesystem>

#include "run/job.h"

namespace ridgeline {

// The file may be a folder that holds it in parts, joined in the order of their names. `job_dir`: the job's folder,
// where it is not what the file says. A job that names no trainer has the one beside this program. Throws
// Error(kInvalidInput) for what is no job, or has a point whose id cannot be a file's name.
Job ReadJob(const std::filesystem::path& job_file, const std::filesystem::path& job_dir);

}  // namespace ridgeline
