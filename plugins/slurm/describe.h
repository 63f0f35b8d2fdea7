// What a job of a sweep asks Slurm for.
#pragma once

#include "common/describe.h"

namespace ridgeline::slurm {

plugin::Description DescribeJob(const plugin::JobToDescribe& job);

}  // namespace ridgeline::slurm
