// Judges a job from its record and what is observed of it. Pure.
#pragma once

#include "common/answers.h"
#include "kubernetes/config.h"
#include "kubernetes/journal.h"
#include "kubernetes/observe.h"

namespace ridgeline::kubernetes {

// Evidence as in launcher.h. At an end, "end" is missing if the job's results say enough.
struct Judgement : plugin::JobState {
  bool awaits_logs = false;  // kEnded: the last output of its pods may still be coming
};

Judgement Judge(const Record& record, const Observation& seen, const Options& options);

}  // namespace ridgeline::kubernetes
