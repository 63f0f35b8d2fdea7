#include "node/classify.h"

#include <signal.h>

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "run/result.h"
#include "run/spec.h"
#include "run/trainer_result.h"

namespace ridgeline {
namespace {

struct Ending {
  RunEnd end;
  std::string message;
  std::string hint;
};

constexpr char kSeeLog[] = "see its log";
constexpr RunEnd kPreempted = InfrastructureReason::kPreempted;

// Why what the trainer says of the point does not hold, and what to do; empty where it does.
struct Disbelief {
  std::string problem;
  std::string hint;
};

Disbelief WhyNotBelieved(const JobPoint& point, const PointEnd& end) {
  const auto contract = [] { return SeeTrainerContract("what a trainer writes is said in"); };
  if (!end.own) return {end.own_problem, end.own_hint.empty() ? kSeeLog : end.own_hint};
  if (!end.own->point_id.empty() && end.own->point_id != point.id) {
    return {fmt::format("its result is of point {}", end.own->point_id), contract()};
  }
  const RunEnd own = EndOf(*end.own);
  if (EndOfExitCode(static_cast<int>(ExitCodeOf(own))) != own) {
    return {fmt::format("its result says '{}', which is not a trainer's to say", EndName(own)), contract()};
  }
  if (own.status == RunStatus::kOk && end.watched.stopped == StopReason::kNone && !end.watched.status.ok()) {
    return {"its result says 'ok'", kSeeLog};
  }
  return {};
}

Ending OfStop(const Job& job, const JobPoint& point, const Watched& watched) {
  switch (watched.stopped) {
    case StopReason::kTimeLimit:
      return {RunStatus::kTimeout, fmt::format("ran past its time limit of {} s", point.time_limit_s),
              "raise the time limit, or make the point smaller"};
    case StopReason::kMemoryLimit:
      return {RunStatus::kOomHost,
              fmt::format("held {} of memory, and its limit is {}", FormatBytes(watched.rss_bytes),
                          FormatBytes(job.memory_limit_bytes)),
              "raise the memory limit, use more activation checkpointing, or a smaller batch"};
    case StopReason::kPreempted:
      return {kPreempted, fmt::format("told to leave; the trainer ended with {}", Describe(watched.status)),
              "run again it continues from its newest checkpoint files, where it has some"};
    default:
      return {RunStatus::kCancelled, "cancelled while it ran", ""};
  }
}

std::string How(const JobPoint& point, const PointEnd& end) {
  const std::string who = HasSeveralProcesses(point.spec) ? fmt::format("rank {}", end.rank) : "the trainer";
  return fmt::format("{} ended with {}", who, Describe(end.watched.status));
}

// A process of it was killed for want of memory: the kernel counts that for this job alone, or for others too, and then
// one of ours was killed by somebody.
bool WasKilledForMemory(const PointEnd& end) { return end.oom.count > 0 && (end.oom.ours_alone || end.watched.killed); }

// Whether the trainer, or we who stopped it, know of an end that is no crash and no hanging. `believed`: its result is.
bool SaysMoreThanCrashed(const PointEnd& end, bool believed) {
  const Watched& watched = end.watched;
  if (believed) return end.own->status != RunStatus::kCrashed;
  if (watched.stopped != StopReason::kNone) return watched.stopped != StopReason::kTimeLimit;
  const ExitStatus& status = watched.status;
  return status.signal == 0 && status.exit_code != 0 && EndOfExitCode(status.exit_code) != RunStatus::kCrashed;
}

Ending OfKillForMemory(const JobPoint& point, const PointEnd& end) {
  const bool itself = end.watched.status.signal == SIGKILL && end.watched.killed;
  std::string message =
      fmt::format("{}: the kernel ran out of memory and killed {}", How(point, end), itself ? "it" : "a process of it");
  if (end.own && !end.own->message.empty()) message += fmt::format("; it said: {}", end.own->message);
  return {RunStatus::kOomHost, std::move(message),
          "set a memory limit, use more activation checkpointing, or a smaller batch"};
}

Ending OfExit(const JobPoint& point, const PointEnd& end, const Disbelief& why) {
  const auto& [problem, hint] = why;
  const ExitStatus& status = end.watched.status;
  const std::string how = How(point, end);
  if (status.signal != 0 || status.exit_code == 0) return {RunStatus::kCrashed, how + "; " + problem, hint};
  const RunEnd run = EndOfExitCode(status.exit_code);
  return {run, fmt::format("{} ({}); {}", how, EndName(run), problem), hint};
}

}  // namespace

RunResult Classify(const Job& job, const JobPoint& point, const PointEnd& end) {
  const Watched& watched = end.watched;
  const Disbelief why = WhyNotBelieved(point, end);
  const bool stopped = watched.stopped != StopReason::kNone;
  RunResult result;
  const auto agrees = [&](const RunEnd& own) {
    return !stopped || own.status == RunStatus::kOk || (watched.stopped == StopReason::kPreempted && own == kPreempted);
  };
  const bool believed = why.problem.empty() && agrees(EndOf(*end.own));
  std::optional<Ending> ending;
  if (WasKilledForMemory(end) && !SaysMoreThanCrashed(end, believed)) {
    ending = OfKillForMemory(point, end);
  } else if (!believed) {
    ending = stopped ? OfStop(job, point, watched) : OfExit(point, end, why);
  }
  if (ending) {
    SetEnd(ending->end, result);
    result.message = std::move(ending->message);
    result.hint = std::move(ending->hint);
    if (end.own) result.evidence["result_status"] = EndName(EndOf(*end.own));
  } else {
    result = *end.own;
    if (result.status != RunStatus::kOk && result.message.empty()) {
      result.message = fmt::format("the trainer says '{}', and not why", EndName(EndOf(result)));
      result.hint = kSeeLog;
    }
  }
  result.point_id = point.id;
  // The plan-only device runs no step, so the process's memory says nothing of the point.
  if (result.memory.rss_peak_bytes == 0 && point.spec.device != "meta") {
    result.memory.rss_peak_bytes = watched.rank_rss_peak_bytes;
  }
  if (HasSeveralProcesses(point.spec) && !watched.status.ok()) result.evidence["rank"] = std::to_string(end.rank);
  if (watched.status.signal != 0) {
    result.evidence["signal"] = std::to_string(watched.status.signal);
  } else {
    result.evidence["exit_code"] = std::to_string(watched.status.exit_code);
  }
  result.evidence["rss_peak_bytes"] = std::to_string(watched.rss_peak_bytes);
  if (watched.rss_bytes > 0) result.evidence["rss_bytes"] = std::to_string(watched.rss_bytes);
  if (job.memory_limit_bytes > 0) result.evidence["memory_limit_bytes"] = std::to_string(job.memory_limit_bytes);
  if (point.time_limit_s > 0) result.evidence["time_limit_s"] = std::to_string(point.time_limit_s);
  if (result.status == RunStatus::kOomHost && end.oom.count > 0) {
    result.evidence["oom_kill"] = std::to_string(end.oom.count);
  }
  if (result.status != RunStatus::kOk && !end.log_tail.empty()) result.evidence["log_tail"] = end.log_tail;
  return result;
}

}  // namespace ridgeline
