// The shell script that a task of a job array runs. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/failure.h"
#include "slurm/config.h"

namespace ridgeline::slurm {

struct BatchJob;

// Whether srun starts the job, and not the script's own process. A container is none of the job's: exec starts its
// trainers in it.
bool StartedBySrun(int64_t nodes, const Options& options);

// Without options of sbatch. Each of `jobs` is one task of the batch, whose options and folder are filled in. It says
// why where it ends before the job has begun (kNotStartedBegin). Throws Failure where a folder cannot be mounted.
std::string Script(const std::vector<const plugin::Json*>& jobs, const BatchJob& batch);

}  // namespace ridgeline::slurm
