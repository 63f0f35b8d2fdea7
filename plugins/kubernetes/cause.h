// Why a Job ended, where Kubernetes knows better than the job's own results: pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "kubernetes/parse.h"

namespace ridgeline::kubernetes {

struct Cause {
  std::string end;  // one of the contract's (run.h)
  std::string message, hint;
};

// Of a Job that has ended. `decides`: the pod that says how, nullptr where there never was one; `started`: any pod did.
// Nothing where the results say enough.
std::optional<Cause> CauseOf(const JobView& job, const PodView* decides, bool started, int64_t now_unix_s);

}  // namespace ridgeline::kubernetes
