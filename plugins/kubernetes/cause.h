// Why a Job ended, where Kubernetes knows better than the job's own results: pure.
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
  std::string reason;  // of `infrastructure`; else empty
  std::string message, hint;
};

// Of a Job that somebody deleted who is not the driver.
Cause OfDeletedJob();

// Of a Job that has ended. `decides`: the pod that says how, nullptr where there never was one. Nothing where the
// results say enough.
std::optional<Cause> CauseOf(const JobView& job, const PodSummary& pods, const PodView* decides, const Options& options,
                             int64_t now_unix_s);

}  // namespace ridgeline::kubernetes
