// Options of sbatch and srun that a sweep passes on unchanged.
#pragma once

#include <string>
#include <vector>

#include "common/options.h"

namespace ridgeline::slurm {

// {"mail-type": "END", "overcommit": true} -> "--mail-type=END", "--overcommit". Throws Failure for an option that
// would prevent jobs from being found again, or that has a setting of its own. Also throws for one that is not written
// in full, because sbatch and srun accept abbreviations: `part` for `partition`.
std::vector<std::string> PassedOn(const plugin::Option& setting);

}  // namespace ridgeline::slurm
