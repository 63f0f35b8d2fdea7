// Why a Job ended, if Kubernetes knows more than the job's own results. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "kubernetes/config.h"
#include "kubernetes/parse.h"
#include "kubernetes/pods.h"

namespace ridgeline::kubernetes {

struct Cause {
  std::string end;     // one of the contract's (run.h)
  std::string reason;  // for `infrastructure`; else empty
  std::string message, hint;
};

// The cause for a Job that was deleted, but not by the driver.
Cause OfDeletedJob();

// The cause for a Job that has ended. `decides`: the pod that shows how the Job ended; nullptr if there never was one.
// Returns nothing if the results say enough.
std::optional<Cause> CauseOf(const JobView& job, const PodSummary& pods, const PodView* decides, const Options& options,
                             int64_t now_unix_s);

}  // namespace ridgeline::kubernetes
