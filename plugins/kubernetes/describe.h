// What a job of a sweep asks Kubernetes for.
#pragma once

#include "common/describe.h"

namespace ridgeline::kubernetes {

plugin::Description DescribeJob(const plugin::JobToDescribe& job);

}  // namespace ridgeline::kubernetes
