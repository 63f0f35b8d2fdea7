#include "sagemaker/judge.h"

#include <algorithm>
#include <charconv>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "ridgeline/job_dir.h"

namespace ridgeline::sagemaker {
namespace {

using plugin::AddEnd;
using plugin::AddInfrastructure;
using plugin::Evidence;
using plugin::Phase;

constexpr size_t kMostTransitions = 40;
constexpr int kKilled = 137;  // 128 + SIGKILL

// "12:00:01 Starting: Launching requested ML instances; 12:03:10 Training: …"
std::string TransitionsOf(const JobView& job) {
  std::string text;
  const size_t first = job.transitions.size() - std::min(job.transitions.size(), kMostTransitions);
  if (first > 0) text = fmt::format("{} earlier ones; ", first);
  for (size_t i = first; i < job.transitions.size(); ++i) {
    const JobView::Transition& each = job.transitions[i];
    text += fmt::format("{}{:%H:%M:%S} {}{}{}", i == first ? "" : "; ",
                        fmt::gmtime(static_cast<std::time_t>(each.start_unix_s)), each.status,
                        each.message.empty() ? "" : ": ", each.message);
  }
  return text;
}

// The exit code at the end of "AlgorithmError: …, exit code: 3".
std::optional<int> ExitCodeOf(const std::string& reason) {
  constexpr std::string_view kMark = "exit code: ";
  const size_t at = reason.rfind(kMark);
  if (at == std::string::npos) return std::nullopt;
  int code = 0;
  const char* const begin = reason.data() + at + kMark.size();
  if (std::from_chars(begin, reason.data() + reason.size(), code).ptr == begin) return std::nullopt;
  return code;
}

void AddAlgorithmError(const std::string& reason, Evidence& evidence) {
  const std::optional<int> code = ExitCodeOf(reason);
  if (!code) return AddInfrastructure("start", reason, "the image's program could not be started", evidence);
  plugin::AddExit(*code, 0, evidence);
  const std::string why(ReasonOfExecExit(*code));
  if (!why.empty()) {
    AddInfrastructure(why, reason,
                      why == "storage" ? "the instance's disk may be full: raise volume_size"
                                       : "the image must have the Ridgeline that submits to it (program:), and the "
                                         "trainer",
                      evidence);
  } else if (*code == kKilled) {
    evidence["message"] = "its container was killed, as it is when the instance has no memory left: " + reason;
  }
}

// What FailureReason begins with says whose doing it was.
void AddFailure(const JobView& job, Evidence& evidence) {
  const std::string& reason = job.failure_reason;
  if (reason.starts_with("AlgorithmError")) return AddAlgorithmError(reason, evidence);
  if (Holds(reason, "CapacityError") || Holds(reason, "InsufficientCapacity")) {
    return AddInfrastructure("start", reason, "AWS has no such instance free: try later, another type, or a plan",
                             evidence);
  }
  if (reason.starts_with("ClientError")) {
    const bool image = Holds(reason, "image") || Holds(reason, "ECR") || Holds(reason, "Image");
    const bool data = Holds(reason, "S3") || Holds(reason, "data download") || Holds(reason, "channel");
    return AddInfrastructure(image  ? "image"
                             : data ? "storage"
                                    : "start",
                             reason, "image: and output: must be readable for role:, in this region", evidence);
  }
  if (reason.starts_with("InternalServerError")) return AddInfrastructure("node", reason, "", evidence);
  AddInfrastructure("node", "SageMaker says: " + (reason.empty() ? "Failed" : reason), "", evidence);
}

// A job has more time than its points, so running out of it is a point's doing only if nothing was lost to waiting.
void AddTimeIsUp(const Record& record, const JobView& job, Evidence& evidence) {
  const std::string message = fmt::format("SageMaker ended the job after its {} s", job.max_run_s);
  if (job.Interruptions() > 0) {
    return AddInfrastructure("preempted", message + ", of which interruptions took a part",
                             "raise time_limit, or do without spot", evidence);
  }
  if (record.time_limit_s > 0) return AddEnd("timeout", message, "raise time_limit, or bundle fewer points", evidence);
  if (record.points.size() == 1) return AddEnd("timeout", message, "set time_limit, or raise max_run", evidence);
  AddInfrastructure("start", message + ", which its points share", "set time_limit, or raise max_run", evidence);
}

void AddStopped(const Record& record, const JobView& job, Evidence& evidence) {
  if (record.cancelled) return AddEnd("cancelled", "the job was cancelled", "", evidence);
  if (job.secondary == "MaxRuntimeExceeded") return AddTimeIsUp(record, job, evidence);
  if (job.secondary == "MaxWaitTimeExceeded") {
    return AddInfrastructure(job.started_unix_s > 0 ? "preempted" : "start",
                             "its time for waiting is up (MaxWaitTimeExceeded)", "raise max_wait, or do without spot",
                             evidence);
  }
  if (job.secondary == "Interrupted") {
    return AddInfrastructure("preempted", "its spot instances were taken away", "", evidence);
  }
  if (!job.training_plan.empty() && Holds(job.Message(), "plan")) {
    return AddInfrastructure("preempted", "its training plan ended: " + job.Message(),
                             "`aws sagemaker list-training-plans` says what is left", evidence);
  }
  AddEnd("cancelled", "somebody stopped the training job", "`ridgeline run` with the same sweep runs its points again",
         evidence);
}

// What the job costs, in words that all launchers share. A plan's instances are paid by the plan.
void AddBill(const JobView& job, Evidence& evidence) {
  if (!job.training_plan.empty() || job.instances <= 0) return;
  const bool began = job.started_unix_s > 0;
  if (began && job.billable_s < 0) return;  // it is not told (yet)
  const bool kept = job.keep_alive_s > 0 && job.warm_pool != "Terminated" && job.warm_pool != "Reused";
  const int64_t pool_s = std::max<int64_t>(0, job.warm_pool_billable_s);
  plugin::AddBill(job.instances, began ? job.billable_s + pool_s : 0,
                  kept ? std::max<int64_t>(0, job.keep_alive_s - pool_s) : 0, evidence);
  if (began && job.spot && job.training_s > job.billable_s) evidence["used_s"] = std::to_string(job.training_s);
}

void AddFacts(const JobView& job, Evidence& evidence) {
  evidence["training_job"] = job.name;
  evidence["instance_type"] = job.instance_type;
  if (job.instances > 1) evidence["instances"] = std::to_string(job.instances);
  evidence["transitions"] = TransitionsOf(job);
  if (!job.failure_reason.empty()) evidence["failure_reason"] = job.failure_reason;
  if (const int64_t count = job.Interruptions(); count > 0) evidence["interruptions"] = std::to_string(count);
  if (job.training_s >= 0) evidence["training_s"] = std::to_string(job.training_s);
  if (job.billable_s >= 0) evidence["billable_s"] = std::to_string(job.billable_s);
  if (job.spot && job.training_s > 0 && job.billable_s >= 0) {
    evidence["spot_savings_percent"] = std::to_string(100 - 100 * job.billable_s / job.training_s);
  }
  if (!job.warm_pool.empty()) evidence["warm_pool"] = job.warm_pool;
  if (job.warm_pool_billable_s >= 0) evidence["warm_pool_billable_s"] = std::to_string(job.warm_pool_billable_s);
}

plugin::JobState OfEnded(const Record& record, const JobView& job) {
  plugin::JobState state{Phase::kEnded, job.started_unix_s, {}, job.arn};
  AddFacts(job, state.evidence);
  AddBill(job, state.evidence);
  plugin::AddQueueWait(job.created_unix_s, job.started_unix_s, state.evidence);
  if (job.ended_unix_s > 0) state.evidence["ended_unix_s"] = std::to_string(job.ended_unix_s);
  if (job.status == "Completed") {
    plugin::AddExit(0, 0, state.evidence);
  } else if (job.status == "Stopped") {
    AddStopped(record, job, state.evidence);
  } else if (record.cancelled) {  // exec was told to stop, and its exit code says so
    AddEnd("cancelled", "the job was cancelled", "", state.evidence);
  } else {
    AddFailure(job, state.evidence);
  }
  return state;
}

plugin::JobState OfWaiting(const JobView& job) {
  plugin::JobState state{Phase::kQueued, 0, {}, job.arn};
  const std::string message = job.Message();
  state.evidence["pending"] = message.empty() ? job.secondary : fmt::format("{}: {}", job.secondary, message);
  const bool capacity = Holds(message, "apacity");
  if (capacity || job.secondary == "Pending" || job.secondary == "Interrupted") {
    state.evidence["waits"] = fmt::format("training job {}: {}", job.name, state.evidence["pending"]);
    state.evidence["waits_for"] = message;
    state.evidence["hint"] = !job.training_plan.empty() ? "it starts when its plan is active and has an instance free"
                             : job.spot                 ? "spot instances come when AWS has some"
                                                        : "SageMaker goes on asking; a plan reserves instances";
  }
  return state;
}

}  // namespace

plugin::JobState Judge(const Record& record, const JobView& job) {
  if (job.HasEnded()) return OfEnded(record, job);
  const bool runs = job.secondary == "Training" || job.secondary == "Uploading" || job.secondary == "Stopping";
  if (!runs && job.status != "Stopping") return OfWaiting(job);
  return {Phase::kRunning, job.started_unix_s, {}, job.arn};
}

plugin::JobState JudgeDeleted(const Record& record) {
  plugin::JobState state{Phase::kEnded, record.started_unix_s, {{"training_job", record.name}}, record.arn};
  if (record.cancelled) {
    AddEnd("cancelled", "the job was cancelled", "", state.evidence);
  } else {
    AddEnd("cancelled", "somebody deleted the training job",
           "`ridgeline run` with the same sweep runs its points again", state.evidence);
  }
  return state;
}

}  // namespace ridgeline::sagemaker
