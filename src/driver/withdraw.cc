#include "driver/withdraw.h"

#include <map>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace ridgeline::driver {
namespace {

void Mark(const std::vector<LiveJob*>& jobs, const DriverParts& parts, const std::string& why) {
  std::map<std::string, std::string> evidence;
  if (!why.empty()) evidence[kWithdrawn] = why;
  parts.store.Transact([&] {
    for (LiveJob* job : jobs) {
      job->withdrawn = why;
      parts.store.SetJobState(job->record.key, job->record.state, evidence, parts.clock.UnixNs());
    }
  });
}

void TellToEnd(const std::vector<LiveJob*>& jobs, const DriverParts& parts) {
  std::vector<launch::JobRef> refs;
  for (const LiveJob* job : jobs) refs.push_back(job->ref());
  if (refs.empty()) return;
  try {
    parts.launcher.Cancel(refs);
  } catch (const Error& e) {
    Mark(jobs, parts, "");
    parts.observer.Note(fmt::format("{} queued jobs stay where they are: {}", jobs.size(), PrintableLine(e.message())));
  }
}

}  // namespace

void WithdrawQueued(JobTable& jobs, const DriverParts& parts, const std::string& why, Queued which) {
  std::vector<LiveJob*> queued;
  for (LiveJob* job : jobs.Submitted()) {
    if (which == Queued::kKeptOffNodes && job->kept_off.empty()) continue;
    if (job->phase == launch::JobPhase::kQueued && job->withdrawn.empty()) queued.push_back(job);
  }
  if (queued.empty()) return;
  Mark(queued, parts, why);
  TellToEnd(queued, parts);
}

void EndUnsubmitted(JobTable& jobs, const DriverParts& parts) {
  std::vector<collect::JobToCollect> ends;
  std::vector<LiveJob*> unsubmitted;
  for (LiveJob& job : jobs) {
    if (job.may_exist) continue;
    ends.push_back({job.record, store::JobRecord::State::kCancelled, {}});
    unsubmitted.push_back(&job);
  }
  if (ends.empty()) return;
  collect::Collect(parts.store, ends, parts.clock.UnixNs());
  jobs.Forget(unsubmitted);
}

void WithdrawAdopted(JobTable& jobs, const DriverParts& parts) {
  std::vector<LiveJob*> withdrawn;
  for (LiveJob* job : jobs.Submitted()) {
    if (!job->withdrawn.empty()) withdrawn.push_back(job);
  }
  TellToEnd(withdrawn, parts);
}

}  // namespace ridgeline::driver
