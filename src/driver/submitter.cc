#include "driver/submitter.h"

#include <fmt/format.h>

#include "base/text.h"
#include "driver/patience.h"
#include "driver/retry_policy.h"
#include "run/result.h"

namespace ridgeline::driver {

std::vector<launch::Submission> Submitter::Ask(const std::vector<LiveJob*>& due) {
  std::vector<launch::LaunchJob> asked;
  for (const LiveJob* job : due) {
    asked.push_back(launch::ToLaunchJob(*job->to_submit, program_));
    asked.back().avoid = faults_.avoid();
  }
  try {
    return parts_.launcher.Submit(asked);
  } catch (const Error& e) {
    std::vector<launch::Submission> answers;
    for (const launch::LaunchJob& job : asked) answers.push_back({job.key, "", e});
    return answers;
  }
}

void Submitter::Taken(LiveJob& job, const launch::Submission& answer, int64_t asked_unix_ns) {
  job.record.native_id = answer.native_id;
  job.record.state = store::JobRecord::State::kSubmitted;
  job.submitted_ns = job.collected_ns = parts_.clock.MonotonicNs();
  job.to_submit.reset();
  parts_.store.MarkSubmitted(job.record.key, job.record.native_id, asked_unix_ns);
  job.kept_off = Join(faults_.avoid(), " ");
  if (!job.kept_off.empty()) {
    parts_.store.SetJobState(job.record.key, job.record.state, {{kKeptOff, job.kept_off}}, asked_unix_ns);
  }
  refused_in_a_row_ = 0;
  retries_.Answered();
}

Submitter::Outcome Submitter::Submit(JobTable& jobs) {
  Outcome outcome;
  const std::vector<LiveJob*> due = jobs.ToSubmit(parts_.clock.MonotonicNs(), batch_.jobs());
  if (due.empty()) return outcome;
  // The time from before the question: a job may begin before the launcher has answered.
  const int64_t asked_unix_ns = parts_.clock.UnixNs();
  const int64_t asked_ns = parts_.clock.MonotonicNs();
  const std::vector<launch::Submission> answers = Ask(due);
  batch_.Took(due.size(), parts_.clock.MonotonicNs() - asked_ns);
  parts_.store.Transact([&] {
    for (size_t i = 0; i < due.size(); ++i) {
      LiveJob& job = *due[i];
      if (answers[i].later) continue;
      outcome.asked = true;
      job.may_exist = true;
      if (!answers[i].error) {
        Taken(job, answers[i], asked_unix_ns);
        continue;
      }
      const Error& error = *answers[i].error;
      if (IsSubmittedAgain(answers[i], ++job.submit_tries)) {
        job.next_submit_ns = parts_.clock.MonotonicNs() + TryAgainNs(job.submit_tries);
        if (answers[i].retry) retries_.NotAnswered(error);
        continue;
      }
      last_refusal_ = error;
      outcome.refused.push_back(&job);
      outcome.ends.push_back({job.record,
                              store::JobRecord::State::kLost,
                              {{"end", "infrastructure"},
                               {"reason", std::string(ReasonName(answers[i].reason))},
                               {"message", "it could not be submitted: " + error.message()},
                               {"hint", error.hint()}}});
    }
  });
  if (!outcome.refused.empty()) {
    refused_in_a_row_ += static_cast<int>(outcome.refused.size());
    const size_t jobs = outcome.refused.size();
    parts_.observer.Note(fmt::format("not submitted{}: {}", jobs == 1 ? "" : fmt::format(", {} jobs", jobs),
                                     PrintableLine(last_refusal_->message())));
  }
  return outcome;
}

void Submitter::ThrowIfDown() const {
  if (!last_refusal_) return;
  const bool wrong = last_refusal_->kind() != ErrorKind::kInfrastructure;
  if (!wrong && refused_in_a_row_ < kRefusedJobsInARow) return;
  throw Error(ErrorKind::kInfrastructure,  // whatever the launcher objects to, it is no result of a point
              "no jobs are taken: " + last_refusal_->message(), last_refusal_->hint());
}

}  // namespace ridgeline::driver
