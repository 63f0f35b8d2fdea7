// What a job on SageMaker asks for (common/describe.h).
#pragma once

#include "common/describe.h"

namespace ridgeline::sagemaker {

plugin::Description DescribeJob(const plugin::JobToDescribe& job);

}  // namespace ridgeline::sagemaker
