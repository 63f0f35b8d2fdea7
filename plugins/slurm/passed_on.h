// Options of sbatch and srun that a sweep hands on as they are.
#pragma once

#include <string>
#include <vector>

#include "common/options.h"

namespace ridgeline::slurm {

// {"mail-type": "END", "overcommit": true} -> "--mail-type=END", "--overcommit". Throws Failure for one that would take
// away what finds a job again or that has a setting of its own, and for one that is not written in full: sbatch and
// srun take an option by its first letters, and so `part` for `partition`.
std::vector<std::string> PassedOn(const plugin::Option& setting);

}  // namespace ridgeline::slurm
