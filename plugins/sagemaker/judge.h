// What a training job's description means for the job. Pure.
#pragma once

#include "common/answers.h"
#include "sagemaker/journal.h"
#include "sagemaker/parse.h"

namespace ridgeline::sagemaker {

// Returns the job's state, with evidence. The evidence of an end lacks what the job's own output says.
plugin::JobState Judge(const Record& record, const JobView& job);

// The state of a job that SageMaker had, and does not know any more.
plugin::JobState JudgeDeleted(const Record& record);

}  // namespace ridgeline::sagemaker
