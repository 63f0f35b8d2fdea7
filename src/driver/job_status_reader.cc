#include "driver/job_status_reader.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "driver/lock.h"
#include "driver/pace.h"

namespace ridgeline::driver {
namespace {

bool IsOfTheLauncher(const store::JobRecord& job) {
  return job.state == store::JobRecord::State::kSubmitted || job.state == store::JobRecord::State::kRunning;
}

void BringUpToDate(const launch::JobState& said, store::JobRecord& job) {
  if (!said.native_id.empty()) job.native_id = said.native_id;
  switch (said.phase) {
    case launch::JobPhase::kMissing:
      return;  // a scheduler may know a new job late; the driver that follows the job finds out whether it is lost
    case launch::JobPhase::kQueued:
      job.state = store::JobRecord::State::kSubmitted;
      break;
    case launch::JobPhase::kRunning:
      job.state = store::JobRecord::State::kRunning;
      break;
    case launch::JobPhase::kEnded:
      job.state = store::JobRecord::State::kEnded;
      break;
  }
  job.evidence = said.evidence;
}

}  // namespace

void JobStatusReader::Ask(const std::vector<store::JobRecord>& jobs) {
  said_.clear();
  not_asked_.clear();
  std::map<std::pair<std::string, std::string>, std::vector<const store::JobRecord*>> together;
  for (const store::JobRecord& job : jobs) {
    if (IsOfTheLauncher(job)) together[{job.sweep, job.launcher}].push_back(&job);
  }
  if (together.empty()) return;
  const std::optional<DriverLock> lock = DriverLock::TakeForAMoment(db_);
  if (!lock) return;
  const int64_t begin_ns = clock_.MonotonicNs();
  int64_t wish_ns = 0;
  for (const auto& [of, asked] : together) {
    try {
      const std::unique_ptr<launch::Launcher> launcher = open_(*asked.front());
      if (!launcher->can().queue) continue;
      std::vector<launch::JobRef> refs;
      for (const store::JobRecord* job : asked) refs.push_back({job->key, job->native_id});
      for (launch::JobState& state : launcher->Look(refs)) said_[state.key] = std::move(state);
      wish_ns = std::max(wish_ns, launcher->PollPauseNs());
    } catch (const Error& e) {
      not_asked_ += fmt::format("how these jobs of {} are could not be asked: {}\n", PrintableLine(of.second),
                                PrintableLine(e.message()));
    }
  }
  const int64_t now_ns = clock_.MonotonicNs();
  next_ask_ns_ = now_ns + PauseAfterAskingNs(wish_ns, now_ns - begin_ns);
}

std::string JobStatusReader::Look(std::vector<store::JobRecord>& jobs) {
  if (clock_.MonotonicNs() >= next_ask_ns_) Ask(jobs);
  for (store::JobRecord& job : jobs) {
    const auto said = said_.find(job.key);
    if (said != said_.end() && IsOfTheLauncher(job)) BringUpToDate(said->second, job);
  }
  return not_asked_;
}

}  // namespace ridgeline::driver
