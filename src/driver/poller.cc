#include "driver/poller.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "collect/job_ends.h"
#include "driver/patience.h"
#include "driver/retry_policy.h"

namespace ridgeline::driver {

std::vector<launch::JobState> Poller::Ask(const std::vector<LiveJob*>& jobs) {
  std::vector<launch::JobRef> refs;
  for (const LiveJob* job : jobs) refs.push_back(job->ref());
  if (refs.empty()) return {};
  try {
    const auto states = AskInBatches<launch::JobState, launch::JobRef>(
        batch_, parts_.clock, refs,
        [&](std::span<const launch::JobRef> batch) { return parts_.launcher.PollMany(batch); },
        [&] { return parts_.interrupts() > 0; });
    failed_questions_ = 0;
    retries_.Answered();
    return states.value_or(std::vector<launch::JobState>());
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kInfrastructure) throw;
    retries_.NotAnswered(e);
    next_ask_ns_ = Now() + TryAgainNs(++failed_questions_);
    return {};
  }
}

std::optional<Poller::Outcome> Poller::Poll(JobTable& jobs) {
  if (Now() < next_ask_ns_) return std::nullopt;
  Outcome outcome;
  const std::vector<LiveJob*> asked = jobs.Submitted();
  const std::vector<launch::JobState> states = Ask(asked);
  if (states.empty()) return outcome;
  std::vector<LiveJob*> done;
  std::vector<LiveJob*> broken;
  parts_.store.Transact([&] {
    for (size_t i = 0; i < states.size(); ++i) {
      LiveJob& job = *asked[i];
      const std::optional<store::JobRecord::State> state = NewState(job, states[i]);
      if (states[i].phase == launch::JobPhase::kRunning && IsBrokenGang(job)) broken.push_back(&job);
      if (!state) continue;
      const bool hangs = *state == store::JobRecord::State::kEnded && states[i].phase == launch::JobPhase::kRunning;
      if (hangs) done.push_back(&job);
      if (states[i].phase == launch::JobPhase::kEnded && job.ended_since_ns == 0) job.ended_since_ns = Now();
      const bool may_come = states[i].phase == launch::JobPhase::kEnded && job.withdrawn.empty() &&
                            EndedWell(states[i]) && Now() - job.ended_since_ns < kLinesMayComeNs;
      outcome.to_collect.push_back({job.record, *state, EvidenceOf(job, states[i]), &job.results, may_come});
      outcome.looked_at.push_back(&job);
      if (!store::IsLive(*state)) outcome.ended.push_back(&job);
    }
  });
  TellToEnd(done, fmt::format("{} still ran though all results were there",
                              done.size() == 1 ? "a job" : fmt::format("{} jobs", done.size())));
  EndBrokenGangs(broken);
  return outcome;
}

// A withdrawn job ended because it was withdrawn, and its points are run later. What it was billed stays so.
std::map<std::string, std::string> Poller::EvidenceOf(const LiveJob& job, const launch::JobState& answer) {
  if (!job.gang_ended.empty() && job.withdrawn.empty()) {
    // We ended this job, so its end says nothing about the cause.
    std::map<std::string, std::string> evidence = answer.evidence;
    for (const char* ours :
         {collect::said::kEnd, collect::said::kReason, collect::said::kMessage, collect::said::kHint}) {
      evidence.erase(ours);
    }
    evidence[collect::said::kGangEnded] = job.gang_ended;
    return evidence;
  }
  if (job.withdrawn.empty()) return answer.evidence;
  std::map<std::string, std::string> evidence = {
      {"end", "infrastructure"}, {"reason", "node"}, {"message", job.withdrawn}, {"began", "no"}};
  for (const char* bill :
       {collect::said::kBilledS, collect::said::kBilledNodes, collect::said::kMayBillS, collect::said::kUsedS}) {
    if (const auto told = answer.evidence.find(bill); told != answer.evidence.end()) evidence.insert(*told);
  }
  return evidence;
}

void Poller::Pause() {
  const int64_t pause_ns = parts_.launcher.PollPauseNs();
  if (pause_ns > 0 && failed_questions_ == 0) next_ask_ns_ = Now() + pause_ns;
}

// Returns whether each point must have a line of results: exec's exit code says so, and the scheduler reports nothing
// else.
bool Poller::EndedWell(const launch::JobState& answer) {
  const auto code = answer.evidence.find("exit_code");
  return !answer.evidence.contains("end") && !answer.evidence.contains("message") &&
         !answer.evidence.contains("signal") && (code == answer.evidence.end() || code->second == "0");
}

// If nodes share no folder, no node can end the others. The others would wait until the time limit for a node that
// failed, and a node that hangs would hold them all.
bool Poller::IsBrokenGang(LiveJob& job) {
  const collect::JobResults& results = job.results;
  if (std::exchange(job.awaiting, results.awaiting) != results.awaiting) {
    job.awaiting_since_ns = job.awaiting_since_unix_ns = 0;
  }
  if (results.awaiting.empty() || job.told_to_end) {
    job.awaiting_since_ns = 0;
  } else if (job.awaiting_since_ns == 0) {
    job.awaiting_since_ns = AwaitingSinceNs(job);
  }
  if (results.failed_part.empty() || job.told_to_end) {
    job.broken_since_ns = 0;
  } else if (job.broken_since_ns == 0) {
    job.broken_since_ns = Now();
  }
  const auto is_over = [&](int64_t since_ns, int64_t patience_ns) {
    return since_ns != 0 && Now() - since_ns >= patience_ns;
  };
  return is_over(job.broken_since_ns, kBrokenGangNs) || is_over(job.awaiting_since_ns, kOthersEndNs);
}

// Returns since when the job's point awaits other nodes, and keeps it for whoever goes on with the job.
int64_t Poller::AwaitingSinceNs(LiveJob& job) {
  const int64_t unix_ns = parts_.clock.UnixNs();
  if (job.awaiting_since_unix_ns == 0) {
    job.awaiting_since_unix_ns = unix_ns;
    std::map<std::string, std::string> evidence = {{kAwaiting, job.awaiting},
                                                   {kAwaitingSince, std::to_string(unix_ns)}};
    if (!job.gang_ended.empty()) evidence[collect::said::kGangEnded] = job.gang_ended;
    parts_.store.SetJobState(job.record.key, job.record.state, evidence, unix_ns);
  }
  return Now() - std::max<int64_t>(0, unix_ns - job.awaiting_since_unix_ns);
}

// A node may be stuck while it ends a job, and a rank may hang after the last result.
bool Poller::HangsThoughDone(LiveJob& job) {
  if (!std::ranges::all_of(job.record.points, &store::JobRecord::Point::has_result)) return false;
  if (job.done_since_ns == 0) job.done_since_ns = Now();
  return Now() - job.done_since_ns >= kDoneButRunningNs;
}

bool Poller::TellToEnd(const std::vector<LiveJob*>& jobs, const std::string& why) {
  std::vector<launch::JobRef> refs;
  for (LiveJob* job : jobs) refs.push_back(job->ref());
  if (refs.empty()) return true;
  parts_.observer.Note(fmt::format("{}, and {} told to end", why, refs.size() == 1 ? "was" : "were"));
  try {
    parts_.launcher.Cancel(refs);
    return true;
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kInfrastructure) throw;
    parts_.observer.Note("they could not be told: " + PrintableLine(e.message()));
    return false;
  }
}

// The results are collected when the job has ended.
void Poller::EndBrokenGangs(const std::vector<LiveJob*>& broken) {
  for (LiveJob* job : broken) {
    const bool failed = !job->results.failed_part.empty();
    job->gang_ended = failed ? job->results.failed_part : "a node hangs, or is gone";
    parts_.store.SetJobState(job->record.key, job->record.state, {{collect::said::kGangEnded, job->gang_ended}},
                             parts_.clock.UnixNs());
    const std::string why =
        failed ? fmt::format("a node that failed while others went on ({})", PrintableLine(job->gang_ended))
               : fmt::format("a node that has not ended {} minutes after the first had ended well",
                             kOthersEndNs / 60'000'000'000);
    job->told_to_end = TellToEnd({job}, fmt::format("job {} has {}", job->record.key, why));
    job->broken_since_ns = job->awaiting_since_ns = job->awaiting_since_unix_ns =
        0;  // tries again later if the launcher could not be told
  }
}

// Returns the job's state after this answer, or nothing if there is nothing to collect now.
std::optional<store::JobRecord::State> Poller::NewState(LiveJob& job, const launch::JobState& answer) {
  if (answer.phase != launch::JobPhase::kMissing) job.missing_since_ns = 0;
  // Time in the queue does not count as time of the job's points.
  if (job.phase == launch::JobPhase::kQueued && answer.phase == launch::JobPhase::kRunning && job.collected_ns != 0) {
    job.collected_ns = Now();
  }
  job.phase = answer.phase;
  NoteNoNode(job, answer);
  NoteLogProblem(job, answer);
  if (!answer.native_id.empty() && answer.native_id != job.record.native_id) {
    job.record.native_id = answer.native_id;
    parts_.store.MarkSubmitted(job.record.key, answer.native_id, parts_.clock.UnixNs());
  }
  if (answer.started_unix_ns > 0 && answer.started_unix_ns != job.record.started_unix_ns) {
    job.record.started_unix_ns = answer.started_unix_ns;
    parts_.store.MarkStarted(job.record.key, answer.started_unix_ns);
  }
  switch (answer.phase) {
    case launch::JobPhase::kQueued:
      NoteWaiting(answer);
      NotePending(job, answer);
      return std::nullopt;
    case launch::JobPhase::kEnded:
      return store::JobRecord::State::kEnded;
    case launch::JobPhase::kMissing:
      if (job.missing_since_ns == 0) job.missing_since_ns = Now();
      if (Now() - job.missing_since_ns < kMissingNs) return std::nullopt;
      return store::JobRecord::State::kLost;
    case launch::JobPhase::kRunning:
      if (job.record.state != store::JobRecord::State::kRunning) {
        job.record.state = store::JobRecord::State::kRunning;
        if (job.withdrawn.empty()) {
          parts_.store.SetJobState(job.record.key, store::JobRecord::State::kRunning, {}, parts_.clock.UnixNs());
        }
      }
      if (HangsThoughDone(job)) return store::JobRecord::State::kEnded;
      return IsTimeToCollect(job) ? std::optional(store::JobRecord::State::kRunning) : std::nullopt;
  }
  return std::nullopt;
}

bool Poller::IsTimeToCollect(const LiveJob& job) const {
  const int64_t since_ns = Now() - job.collected_ns;
  if (job.record.points.size() > 1) return since_ns >= kPartialCollectNs;
  return parts_.launcher.can().queue && since_ns >= kSingleCollectNs;
}

void Poller::NoteNoNode(LiveJob& job, const launch::JobState& answer) const {
  const auto said = answer.evidence.find("no_node");
  if (answer.phase != launch::JobPhase::kQueued || said == answer.evidence.end()) {
    job.no_node_since_ns = 0;
    return;
  }
  if (job.no_node_since_ns == 0) job.no_node_since_ns = Now();
  job.no_node = said->second;
}

// Shows why a job waits to those who watch, and stores it for those who look later. A forecast that moves by less than
// a minute is not new.
void Poller::NotePending(LiveJob& job, const launch::JobState& answer) {
  constexpr int64_t kLittleS = 60;
  if (!job.withdrawn.empty()) return;
  const auto said = [&](const char* name) {
    const auto found = answer.evidence.find(name);
    return found == answer.evidence.end() ? std::string() : found->second;
  };
  std::string pending = said("pending");
  const std::string expected = said("expected_unix_s");
  int64_t expected_s = 0;
  std::from_chars(expected.data(), expected.data() + expected.size(), expected_s);
  if (pending == job.pending && std::abs(expected_s - job.expected_s) < kLittleS) return;
  job.pending = std::move(pending);
  job.expected_s = expected_s;
  std::map<std::string, std::string> evidence;
  if (!job.kept_off.empty()) evidence[kKeptOff] = job.kept_off;
  if (!job.pending.empty()) evidence["pending"] = job.pending;
  if (expected_s > 0) evidence["expected_unix_s"] = expected;
  parts_.store.SetJobState(job.record.key, job.record.state, evidence, parts_.clock.UnixNs());
}

// Notes the first problem, because one job is seldom alone. The end of the run reports their number.
void Poller::NoteLogProblem(const LiveJob& job, const launch::JobState& answer) {
  const auto problem = answer.evidence.find("log_problem");
  if (problem == answer.evidence.end()) return;
  if (answer.phase == launch::JobPhase::kEnded) unread_logs_.insert(job.record.key);
  if (std::exchange(noted_log_problem_, true)) return;
  parts_.observer.Note(fmt::format("job {}: {}; of a log that is not read to its end a result has its headline at most",
                                   job.record.key, PrintableLine(problem->second)));
}

// Notes it once for all jobs that wait for the same thing.
void Poller::NoteWaiting(const launch::JobState& answer) {
  const auto waits = answer.evidence.find("waits");
  if (waits == answer.evidence.end()) return;
  const auto subject = answer.evidence.find("waits_for");
  if (!noted_waits_.insert(subject == answer.evidence.end() ? waits->second : subject->second).second) return;
  const auto hint = answer.evidence.find("hint");
  parts_.observer.Note(
      fmt::format("waits: {}{}", PrintableLine(waits->second),
                  hint == answer.evidence.end() || hint->second.empty() ? "" : "; " + PrintableLine(hint->second)));
}

std::string Poller::UnreadLogs() const {
  const size_t jobs = unread_logs_.size();
  if (jobs == 0) return {};
  return fmt::format("the logs of {} could not be read whole: `log_problem` in the evidence of a job says why",
                     CountOf(jobs, "job"));
}

}  // namespace ridgeline::driver
