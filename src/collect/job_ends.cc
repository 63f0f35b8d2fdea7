#include "collect/job_ends.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "ridgeline/job_dir.h"
#include "run/job.h"

namespace ridgeline::collect {

namespace {

// Returns the end if it is one that a scheduler can know. Only `exec`, which started the trainer, knows whether the
// trainer is at fault. Returns nothing if the scheduler gives no such end.
std::optional<RunEnd> ScheduledEnd(const JobToCollect& from) {
  try {
    const RunEnd end = EndFromNames(Said(from, said::kEnd), Said(from, said::kReason));
    switch (end.status) {
      case RunStatus::kInfrastructure:
      case RunStatus::kCancelled:
      case RunStatus::kTimeout:
      case RunStatus::kOomHost:
        return end;
      default:
        return std::nullopt;
    }
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

std::string Said(const JobToCollect& from, const char* key) {
  const auto it = from.evidence.find(key);
  return it == from.evidence.end() ? "" : it->second;
}

std::string WhyTooEarly(const JobToCollect& from, const std::string& point_id, int64_t began_ns, int64_t ended_ns) {
  constexpr int64_t kSecond = 1'000'000'000;
  constexpr int64_t kClocksDiffer =
      10 * kSecond;  // between the node and the scheduler; a job gets a minute more than its points
  // A point that did not report its beginning did not begin before its job.
  const int64_t job_began_ns = from.job.started_unix_ns;
  if (began_ns <= 0) began_ns = job_began_ns;
  if (began_ns <= 0 || ended_ns <= began_ns) return {};
  std::optional<Job> job;
  try {
    job = ReadJobFile(from.job.job_dir);
  } catch (const Error&) {
    return {};
  }
  if (!job) return {};
  const auto point = std::ranges::find(job->points, point_id, &JobPoint::id);
  if (point == job->points.end() || point->time_limit_s == 0) return {};
  const int64_t had_ns = ended_ns - began_ns;
  if (had_ns + kClocksDiffer >= point->time_limit_s * kSecond) return {};
  std::string text = fmt::format("its job's time was up after {} of the {} that this point may take",
                                 FormatDuration(had_ns), FormatDuration(point->time_limit_s * kSecond));
  if (job_began_ns > 0 && began_ns > job_began_ns) {
    text += fmt::format("; the point began {} after its job", FormatDuration(began_ns - job_began_ns));
  }
  return text;
}

// `exec` ends well however its points end, so no point ended the job. A point that had not begun did not run out of
// time or memory.
RunEnd EndOfJob(const JobToCollect& from, bool began) {
  std::optional<RunEnd> said = ScheduledEnd(from);
  std::error_code ec;
  const bool is_gone = std::filesystem::status(from.job.job_dir, ec).type() == std::filesystem::file_type::not_found;
  // If the folder is missing here too, the node is not at fault.
  if (said && said->reason == InfrastructureReason::kNode && is_gone) said = InfrastructureReason::kStorage;
  const bool cancelled = from.state == store::JobRecord::State::kCancelled;
  if (cancelled && (!said || said->status == RunStatus::kInfrastructure)) return RunStatus::kCancelled;
  if (said && (began || said->status == RunStatus::kInfrastructure || said->status == RunStatus::kCancelled)) {
    return *said;
  }
  if (const auto reason = ReasonFromName(ReasonOfExecExit(std::atoi(Said(from, "exit_code").c_str())))) return *reason;
  if (is_gone) return InfrastructureReason::kStorage;
  return began || from.state != store::JobRecord::State::kEnded ? InfrastructureReason::kLost
                                                                : InfrastructureReason::kStart;
}

void CorrectEnd(const JobToCollect& from, RunResult& result) {
  const bool told = result.status == RunStatus::kCancelled || result.reason == InfrastructureReason::kPreempted;
  std::optional<RunEnd> end = ScheduledEnd(from);
  // A person ended the job, whatever the scheduler took that for.
  if (from.state == store::JobRecord::State::kCancelled && end && end->status == RunStatus::kInfrastructure)
    end.reset();
  if (!told || !end || end->reason == InfrastructureReason::kLost) return;
  if (end->status == RunStatus::kTimeout && result.evidence.contains("checkpoint_dir")) return;
  std::string said = Said(from, said::kMessage);
  if (end->status == RunStatus::kTimeout) {
    std::string early = WhyTooEarly(from, result.point_id, result.started_unix_ns, result.ended_unix_ns);
    if (!early.empty()) {
      end = InfrastructureReason::kStart;
      said = std::move(early);
    }
  }
  if (said.empty() && *end == EndOf(result)) return;  // the node's assumption was right
  SetEnd(*end, result);
  result.message = said.empty() ? fmt::format("the scheduler says: {}", EndName(*end)) : said;
  result.hint = Said(from, said::kHint);
  for (const auto& [name, value] : from.evidence) result.evidence.try_emplace(name, value);
}

void CorrectEndOfSeveral(const JobToCollect& from, RunResult& result) {
  const bool cancelled = from.state == store::JobRecord::State::kCancelled;
  const std::optional<RunEnd> end = cancelled ? RunEnd(RunStatus::kCancelled) : ScheduledEnd(from);
  const bool ok = result.status == RunStatus::kOk;
  if (!end || (!ok && (store::IsFinal(end->status) || end->reason == InfrastructureReason::kLost))) return;
  const std::string said = Said(from, said::kMessage);
  result.message = fmt::format("{}; on its first node it was {}{}", said.empty() ? EndName(*end) : said,
                               EndName(EndOf(result)), ok ? "" : ": " + result.message);
  result.hint = Said(from, said::kHint);
  SetEnd(*end, result);
  result.evidence.erase(said::kNode);  // the node of the crash
  for (const auto& [name, value] : from.evidence) result.evidence.try_emplace(name, value);
}

}  // namespace ridgeline::collect
