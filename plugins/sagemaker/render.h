// What a person can submit without a driver: requests, job files, and scripts that submit, wait and fetch. Pure.
#pragma once

#include "common/answers.h"
#include "sagemaker/config.h"

namespace ridgeline::sagemaker {

// Throws Failure as MakeTrainingJob does.
plugin::Rendering RenderJobs(const plugin::Json& jobs, const Options& options);

}  // namespace ridgeline::sagemaker
