// The shell script that a task of a job array runs. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/failure.h"
#include "slurm/config.h"

namespace ridgeline::slurm {

struct BatchJob;

// Returns whether srun starts the job, instead of the script's own process. This does not depend on a container,
// because exec starts the trainers in it.
bool StartedBySrun(int64_t nodes, const Options& options);

// Returns the script without sbatch options. Each of `jobs` is one task of the batch, whose options and folder are
// filled in. If it ends before the job has begun, the script says why (kNotStartedBegin). Throws Failure if a folder
// cannot be mounted.
std::string Script(const std::vector<const plugin::Json*>& jobs, const BatchJob& batch);

}  // namespace ridgeline::slurm
