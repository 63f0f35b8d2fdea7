#include "sagemaker/parse.h"

#include <algorithm>
#include <cmath>

#include "sagemaker/request.h"

namespace ridgeline::sagemaker {
namespace {

using plugin::Json;

// A member that may be missing. One of another type is none of the service.
template <typename Value>
Value Member(const Json& document, const char* name, Value otherwise) {
  const auto& members = document.get_ref<const Json::object_t&>();
  const auto found = members.find(name);
  return found == members.end() || found->second.is_null() ? otherwise : found->second.get<Value>();
}

std::string Text(const Json& document, const char* name) { return Member(document, name, std::string()); }

// Times are numbers of seconds, with a fraction.
int64_t Whole(const Json& document, const char* name, int64_t otherwise) {
  const auto number = Member(document, name, static_cast<double>(otherwise));
  return std::abs(number) < 1e15 ? static_cast<int64_t>(number) : otherwise;
}

Json Mapping(const Json& document, const char* name) { return Member(document, name, Json::object_t()); }

Json List(const Json& document, const char* name) { return Member(document, name, Json::array_t()); }

}  // namespace

bool JobView::HasEnded() const { return IsEnd(status); }

int64_t JobView::Interruptions() const {
  return std::count_if(transitions.begin(), transitions.end(),
                       [](const Transition& each) { return each.status == "Interrupted"; });
}

std::string JobView::Message() const { return transitions.empty() ? "" : transitions.back().message; }

JobRows ParseRows(const Json& document) {
  JobRows page;
  for (const Json& each : document.at("TrainingJobSummaries").get_ref<const Json::array_t&>()) {
    page.rows.push_back({each.at("TrainingJobName").get<std::string>(), each.at("TrainingJobStatus").get<std::string>(),
                         Text(each, "SecondaryStatus"), Member(each, "LastModifiedTime", 0.0),
                         Text(Mapping(each, "WarmPoolStatus"), "Status")});
  }
  page.next_token = Text(document, "NextToken");
  return page;
}

LogPage ParseLogPage(const Json& document) {
  LogPage page;
  for (const Json& each : List(document, "events")) {
    page.events.push_back(
        {Text(each, "eventId"), Text(each, "logStreamName"), Text(each, "message"), Whole(each, "timestamp", 0)});
  }
  page.next_token = Text(document, "nextToken");
  return page;
}

JobView ParseJob(const Json& document) {
  JobView job;
  document.at("TrainingJobName").get_to(job.name);
  document.at("TrainingJobStatus").get_to(job.status);
  job.arn = Text(document, "TrainingJobArn");
  job.secondary = Text(document, "SecondaryStatus");
  job.failure_reason = Text(document, "FailureReason");
  job.hash = Text(Mapping(document, "Environment"), kHashVariable);
  const Json resources = Mapping(document, "ResourceConfig");
  job.instance_type = Text(resources, "InstanceType");
  job.training_plan = Text(resources, "TrainingPlanArn");
  job.instances = Whole(resources, "InstanceCount", 0);
  job.keep_alive_s = Whole(resources, "KeepAlivePeriodInSeconds", 0);
  job.spot = Member(document, "EnableManagedSpotTraining", false);
  job.created_unix_s = Whole(document, "CreationTime", 0);
  job.started_unix_s = Whole(document, "TrainingStartTime", 0);
  job.ended_unix_s = Whole(document, "TrainingEndTime", 0);
  job.max_run_s = Whole(Mapping(document, "StoppingCondition"), "MaxRuntimeInSeconds", 0);
  job.training_s = Whole(document, "TrainingTimeInSeconds", -1);
  job.billable_s = Whole(document, "BillableTimeInSeconds", -1);
  const Json pool = Mapping(document, "WarmPoolStatus");
  job.warm_pool = Text(pool, "Status");
  job.warm_pool_billable_s = Whole(pool, "ResourceRetainedBillableTimeInSeconds", -1);
  for (const Json& each : List(document, "SecondaryStatusTransitions")) {
    job.transitions.push_back(
        {Text(each, "Status"), Text(each, "StatusMessage"), Whole(each, "StartTime", 0), Whole(each, "EndTime", 0)});
  }
  return job;
}

}  // namespace ridgeline::sagemaker
