#include "node/classify.h"

#include <signal.h>

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "run/consistency.h"
#include "run/disturbance.h"
#include "run/gpu_limits.h"
#include "run/result.h"
#include "run/spec.h"
#include "run/trainer_result.h"
#include "trainers/run_result.h"

namespace ridgeline::node {
namespace {

struct Ending {
  RunEnd end;
  std::string message;
  std::string hint;
};

constexpr char kSeeLog[] = "see its log";
constexpr RunEnd kPreempted = InfrastructureReason::kPreempted;

// Why the trainer's result for the point is not accepted, and what to do; empty if it is accepted.
struct Disbelief {
  std::string problem;
  std::string hint;
};

Disbelief WhyNotBelieved(const JobPoint& point, const PointEnd& end) {
  const auto contract = [] { return SeeTrainerContract("the trainer contract is in"); };
  if (!end.own)
    return {end.own_problem.empty() ? "it wrote no result" : end.own_problem,
            end.own_hint.empty() ? kSeeLog : end.own_hint};
  if (!end.own->point_id.empty() && end.own->point_id != point.id) {
    return {fmt::format("its result is of point {}", ShortenToBytes(end.own->point_id, 80)), contract()};
  }
  const RunEnd own = EndOf(*end.own);
  if (!end.own_is_read && EndOfExitCode(static_cast<int>(ExitCodeOf(own))) != own) {
    return {fmt::format("its result says '{}', which is not a trainer's to say", EndName(own)), contract()};
  }
  if (own.status == RunStatus::kOk && end.watched.stopped == StopReason::kNone && !end.watched.status.ok()) {
    return {"its result says 'ok'", kSeeLog};
  }
  return {};
}

Ending OfStop(const Job& job, const JobPoint& point, const Watched& watched) {
  switch (watched.stopped) {
    case StopReason::kMeetLimit:
      if (MeetLimitS(job, point) == 0) {
        return {InfrastructureReason::kStart,
                fmt::format("no step was seen, and for {} s its ranks on the first node printed nothing and hardly "
                            "wrote or computed",
                            kUsualQuietStartS),
                "do all of its nodes reach each other? The logs of its ranks may say whom they waited for; with "
                "meet_limit you set how long the first step may take"};
      }
      return {InfrastructureReason::kStart, fmt::format("its ranks had not met after {} s", MeetLimitS(job, point)),
              "was it started on all of its nodes, and do they reach each other? The logs of its ranks say whom they "
              "waited for; meet_limit gives them more time"};
    case StopReason::kTimeLimit:
      return {RunStatus::kTimeout, fmt::format("ran past its time limit of {} s", point.time_limit_s),
              "raise the time limit, or make the point smaller"};
    case StopReason::kMemoryLimit:
      return {RunStatus::kOomHost,
              fmt::format("held {} of memory, and its limit is {}", FormatBytes(watched.rss_bytes),
                          FormatBytes(job.memory_limit_bytes)),
              "raise the memory limit, use more activation checkpointing, or a smaller batch"};
    case StopReason::kSaidEnd:
      return {RunStatus::kCrashed, "its log reported an end, but it kept running until it was ended", kSeeLog};
    case StopReason::kElsewhere:
      return {RunStatus::kCrashed, "it was ended because the point had failed on another node", kSeeLog};
    case StopReason::kOthersEnded:
      return {InfrastructureReason::kNode, "it kept running long after rank 0 had ended well, so it was ended",
              kSeeLog};
    case StopReason::kStepsDone:
      return {RunStatus::kCrashed, "its steps were done, but it kept running until it was ended", kSeeLog};
    case StopReason::kPreempted:
      return {kPreempted, fmt::format("told to leave; the trainer ended with {}", Describe(watched.status)),
              "run it again: it continues from its newest checkpoint files, if it has any"};
    default:
      return {RunStatus::kCancelled, "cancelled while it ran", ""};
  }
}

std::string How(const JobPoint& point, const PointEnd& end) {
  const std::string who = HasSeveralProcesses(point.spec) ? fmt::format("rank {}", end.rank) : "the trainer";
  return fmt::format("{} ended with {}", who, Describe(end.watched.status));
}

// Whether one of the point's processes was killed because memory ran out. The kernel counts that either for this job
// alone, or for others, too; then one of ours must have been killed by someone else.
bool WasKilledForMemory(const PointEnd& end) { return end.oom.count > 0 && (end.oom.ours_alone || end.watched.killed); }

// Whether the trainer, or we who stopped it, know of an end other than a crash. `believed`: its result is accepted.
bool SaysMoreThanCrashed(const PointEnd& end, bool believed) {
  if (believed) return end.own->status != RunStatus::kCrashed;
  if (end.watched.stopped != StopReason::kNone) return true;
  const ExitStatus& status = end.watched.status;
  return status.signal == 0 && status.exit_code != 0 && EndOfExitCode(status.exit_code) != RunStatus::kCrashed;
}

Ending OfKillForMemory(const JobPoint& point, const PointEnd& end) {
  const bool itself = end.watched.status.signal == SIGKILL && end.watched.killed;
  std::string message =
      fmt::format("{}: the kernel ran out of memory and killed {}", How(point, end), itself ? "it" : "a process of it");
  if (end.own && !end.own->message.empty()) message += "; it said: " + end.own->message;
  return {RunStatus::kOomHost, std::move(message),
          "set a memory limit, use more activation checkpointing, or a smaller batch"};
}

// The obstacle that made a trainer seem to crash; nothing if it crashed by its own fault. `words`: its own, or why it
// has none.
std::optional<Ending> OfObstacle(const PointEnd& end, const std::string& how, const std::string& words) {
  const ExitStatus& status = end.watched.status;
  const std::string said = words.empty() ? "" : "; " + words;
  if (!end.storage_problem.empty()) {
    return Ending{InfrastructureReason::kStorage, fmt::format("{}{}: {}", how, said, end.storage_problem),
                  "free some space, or mount the missing disk again"};
  }
  if (!end.gone_node.empty()) {
    return Ending{InfrastructureReason::kNode,
                  fmt::format("{}{}; {} is gone, or hangs: it has not ended its part", how, said, end.gone_node),
                  "see what became of that node"};
  }
  // One of several ranks reports the cause, and the others report that they lost it.
  const RunEnd code = EndOfExitCode(status.exit_code);
  if (status.signal == 0 && (code == InfrastructureReason::kStorage || code == InfrastructureReason::kNode)) {
    return Ending{code, how + said, kSeeLog};
  }
  if (!end.watched.began && status.signal == 0) {
    return Ending{InfrastructureReason::kStart, fmt::format("{}, and its ranks had not met{}", how, said),
                  "was it started on all of its nodes, and do they reach each other?"};
  }
  return std::nullopt;
}

Ending OfExit(const std::string& how, const ExitStatus& status, const Disbelief& why) {
  const auto& [problem, hint] = why;
  if (status.signal != 0 || status.exit_code == 0) return {RunStatus::kCrashed, how + "; " + problem, hint};
  const RunEnd run = EndOfExitCode(status.exit_code);
  return {run, fmt::format("{} ({}); {}", how, EndName(run), problem), hint};
}

// The end that overrides the trainer's own result; nothing if that stands.
std::optional<Ending> Overruling(const Job& job, const JobPoint& point, const PointEnd& end) {
  const Watched& watched = end.watched;
  if (end.not_begun) return Ending{end.not_begun->reason, end.not_begun->message, end.not_begun->hint};
  const Disbelief why = WhyNotBelieved(point, end);
  const bool stopped = watched.stopped != StopReason::kNone;
  const bool hung = watched.stopped == StopReason::kSaidEnd || watched.stopped == StopReason::kStepsDone ||
                    watched.stopped == StopReason::kElsewhere;
  const auto agrees = [&](const RunEnd& own) {
    return !stopped || hung || own == RunStatus::kOk ||
           (watched.stopped == StopReason::kPreempted && own == kPreempted);
  };
  const bool believed = why.problem.empty() && agrees(EndOf(*end.own));
  // A hanging run may wait for the process that was killed.
  const bool waited = watched.stopped == StopReason::kTimeLimit && !believed;
  if (WasKilledForMemory(end) && (waited || !SaysMoreThanCrashed(end, believed))) return OfKillForMemory(point, end);
  if (!SaysMoreThanCrashed(end, believed)) {
    if (auto obstacle = OfObstacle(end, How(point, end), believed ? end.own->message : why.problem)) return obstacle;
  }
  if (believed) return std::nullopt;
  return stopped ? OfStop(job, point, watched) : OfExit(How(point, end), watched.status, why);
}

// The figure of a throttled GPU measures its cooling or its power supply. It stays only as evidence.
void RefuseThrottled(RunResult& result) {
  const double share = result.gpu.throttled_share.value_or(0);
  if (result.status != RunStatus::kOk || share <= kThrottledShare) return;
  const std::string what = WhatThrottled(result.gpu);
  SetEnd(InfrastructureReason::kNode, result);
  result.message = fmt::format("its GPU was throttled in {:.0f} % of the measured steps{}", 100 * share,
                               what.empty() ? "" : fmt::format(", by {}", what));
  result.hint = "see to its cooling and its power supply, or leave out measure: {refuse_throttled: true}";
  result.evidence["gpu_throttled_share"] = fmt::format("{:.4g}", share);
}

// A trainer of the contract may report steady figures of few steps, too.
void RefuseFewSteps(const RunSpec& spec, RunResult& result) {
  if (result.status != RunStatus::kOk) return;
  std::string few = TooFewSteps(spec, result);
  if (few.empty()) return;
  SetEnd(RunStatus::kInvalid, result);
  result.message = std::move(few);
  result.hint = "measure more steps, or ask for fewer with measure: {min_steps}";
}

}  // namespace

RunResult Classify(const Job& job, const JobPoint& point, const PointEnd& end) {
  const Watched& watched = end.watched;
  RunResult result;
  if (std::optional<Ending> ending = Overruling(job, point, end)) {
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
  if (watched.stopped == StopReason::kStepsDone) {
    result.evidence["hung"] = "its steps were done, and it did not end: it was ended";
    // Removed, because it mostly hung, so this says nothing about a unit.
    result.evidence.erase(trainers::kUnitEvidence);
  } else if (watched.stopped == StopReason::kSaidEnd) {
    result.evidence["hung"] = "its log said so, and it went no further: it was ended";
  }
  if (result.reason == InfrastructureReason::kNode && !end.gone_node.empty()) result.evidence["node"] = end.gone_node;
  if (point.spec.refuse_throttled) RefuseThrottled(result);
  if (!end.own_is_end_alone) RefuseFewSteps(point.spec, result);
  result.point_id = point.id;
  // The plan-only device runs no step, so the process's memory says nothing about the point.
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

}  // namespace ridgeline::node
