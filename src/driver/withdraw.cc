#include "driver/withdraw.h"

#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace ridgeline {

void WithdrawQueued(JobTable& jobs, const DriverParts& parts, const std::string& why) {
  std::vector<LiveJob*> queued;
  std::vector<JobRef> refs;
  for (LiveJob* job : jobs.Submitted()) {
    if (job->phase != JobPhase::kQueued || !job->withdrawn.empty()) continue;
    queued.push_back(job);
    refs.push_back(job->ref());
  }
  if (queued.empty()) return;
  try {
    parts.launcher.Cancel(refs);
    for (LiveJob* job : queued) job->withdrawn = why;
  } catch (const Error& e) {
    parts.observer.Note(
        fmt::format("{} queued jobs stay where they are: {}", queued.size(), PrintableLine(e.message())));
  }
}

}  // namespace ridgeline
