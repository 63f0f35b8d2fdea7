// What a job's record and what is seen of it come to: pure.
#pragma once

#include "common/answers.h"
#include "kubernetes/config.h"
#include "kubernetes/journal.h"
#include "kubernetes/observe.h"

namespace ridgeline::kubernetes {

// Evidence as launcher.h has it; of an end, "end" is missing where the job's results say enough.
struct Judgement : plugin::JobState {
  bool awaits_logs = false;  // kEnded: what its pods said may still be on its way
};

Judgement Judge(const Record& record, const Observation& seen, const Options& options);

}  // namespace ridgeline::kubernetes
