#include "driver/poller.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "driver/patience.h"
#include "driver/retry_policy.h"

namespace ridgeline {

std::vector<JobState> Poller::Ask(const std::vector<LiveJob*>& jobs) {
  std::vector<JobRef> refs;
  for (const LiveJob* job : jobs) refs.push_back(job->ref());
  if (refs.empty()) return {};
  try {
    std::vector<JobState> states = parts_.launcher.PollMany(refs);
    failed_questions_ = 0;
    reluctance_.Answered();
    return states;
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kInfrastructure) throw;
    reluctance_.NotAnswered(e);
    next_ask_ns_ = Now() + TryAgainNs(++failed_questions_);
    return {};
  }
}

std::optional<Poller::Outcome> Poller::Poll(JobTable& jobs) {
  const int64_t begin_ns = Now();
  if (begin_ns < next_ask_ns_) return std::nullopt;
  begin_ns_ = begin_ns;
  Outcome outcome;
  const std::vector<LiveJob*> asked = jobs.Submitted();
  const std::vector<JobState> states = Ask(asked);
  for (size_t i = 0; i < states.size(); ++i) {
    LiveJob& job = *asked[i];
    const std::optional<JobRecord::State> state = NewState(job, states[i]);
    if (!state) continue;
    outcome.to_collect.push_back({job.record, *state, EvidenceOf(job, states[i]), &job.results});
    outcome.looked_at.push_back(&job);
    if (!IsLive(*state)) outcome.ended.push_back(&job);
  }
  return outcome;
}

// What a withdrawn job ended of is that, and its points are owed their turn.
std::map<std::string, std::string> Poller::EvidenceOf(const LiveJob& job, const JobState& answer) {
  if (job.withdrawn.empty()) return answer.evidence;
  return {{"end", "infrastructure"}, {"reason", "node"}, {"message", job.withdrawn}, {"began", "no"}};
}

void Poller::Pause() {
  const int64_t pause_ns = parts_.launcher.PollPauseNs();
  if (pause_ns <= 0 || failed_questions_ > 0) return;
  const int64_t now_ns = Now();
  next_ask_ns_ = now_ns + std::max(pause_ns, std::min((now_ns - begin_ns_) * kAskShare, kMostPauseNs));
}

// What an answer makes of a job; nothing where there is nothing to collect now.
std::optional<JobRecord::State> Poller::NewState(LiveJob& job, const JobState& answer) {
  if (answer.phase != JobPhase::kMissing) job.missing_since_ns = 0;
  // What it waited in the queue is no time of its points.
  if (job.phase == JobPhase::kQueued && answer.phase == JobPhase::kRunning && job.collected_ns != 0) {
    job.collected_ns = Now();
  }
  job.phase = answer.phase;
  if (!answer.native_id.empty() && answer.native_id != job.record.native_id) {
    job.record.native_id = answer.native_id;
    parts_.store.MarkSubmitted(job.record.key, answer.native_id, parts_.clock.UnixNs());
  }
  if (answer.started_unix_ns > 0 && answer.started_unix_ns != job.record.started_unix_ns) {
    job.record.started_unix_ns = answer.started_unix_ns;
    parts_.store.MarkStarted(job.record.key, answer.started_unix_ns);
  }
  switch (answer.phase) {
    case JobPhase::kQueued:
      NoteWaiting(answer);
      return std::nullopt;
    case JobPhase::kEnded:
      return JobRecord::State::kEnded;
    case JobPhase::kMissing:
      if (job.missing_since_ns == 0) job.missing_since_ns = Now();
      if (Now() - job.missing_since_ns < kMissingNs) return std::nullopt;
      return JobRecord::State::kLost;
    case JobPhase::kRunning:
      if (job.record.state != JobRecord::State::kRunning) {
        job.record.state = JobRecord::State::kRunning;
        parts_.store.SetJobState(job.record.key, JobRecord::State::kRunning, {}, parts_.clock.UnixNs());
      }
      if (job.record.points.size() < 2 || Now() - job.collected_ns < kPartialCollectNs) return std::nullopt;
      return JobRecord::State::kRunning;
  }
  return std::nullopt;
}

// Once, for all jobs that wait for the same thing.
void Poller::NoteWaiting(const JobState& answer) {
  const auto waits = answer.evidence.find("waits");
  if (waits == answer.evidence.end() || !noted_waits_.insert(waits->second).second) return;
  const auto hint = answer.evidence.find("hint");
  parts_.observer.Note(
      fmt::format("waits: {}{}", PrintableLine(waits->second),
                  hint == answer.evidence.end() || hint->second.empty() ? "" : "; " + PrintableLine(hint->second)));
}

}  // namespace ridgeline
