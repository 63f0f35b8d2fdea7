#include "sagemaker/parse.h"

#include <algorithm>
#include <cmath>

#include "sagemaker/request.h"

namespace ridgeline::sagemaker {
namespace {

using plugin::Json;

std::string Text(const Json& document, const char* name) {
  const auto found = document.find(name);
  return found != document.end() && found->is_string() ? found->get<std::string>() : "";
}

double Number(const Json& document, const char* name, double otherwise) {
  const auto found = document.find(name);
  return found != document.end() && found->is_number() ? found->get<double>() : otherwise;
}

int64_t Whole(const Json& document, const char* name, int64_t otherwise) {
  const double number = Number(document, name, static_cast<double>(otherwise));
  return std::abs(number) < 1e15 ? static_cast<int64_t>(number) : otherwise;
}

Json Mapping(const Json& document, const char* name) {
  const auto found = document.find(name);
  return found != document.end() && found->is_object() ? *found : Json::object();
}

}  // namespace

bool JobView::HasEnded() const { return IsEnd(status); }

int64_t JobView::Interruptions() const {
  return std::count_if(transitions.begin(), transitions.end(),
                       [](const Transition& each) { return each.status == "Interrupted"; });
}

std::string JobView::Message() const { return transitions.empty() ? "" : transitions.back().message; }

std::vector<JobRow> ParseRows(const Json& document) {
  std::vector<JobRow> rows;
  const auto list = document.find("TrainingJobSummaries");
  if (list == document.end() || !list->is_array()) return rows;
  for (const Json& each : *list) {
    if (!each.is_object()) continue;
    rows.push_back({Text(each, "TrainingJobName"), Text(each, "TrainingJobStatus"), Text(each, "SecondaryStatus"),
                    Number(each, "LastModifiedTime", 0), Text(Mapping(each, "WarmPoolStatus"), "Status")});
  }
  return rows;
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
  job.instances = Whole(resources, "InstanceCount", 1);
  job.spot = document.value("EnableManagedSpotTraining", false);
  job.created_unix_s = Whole(document, "CreationTime", 0);
  job.started_unix_s = Whole(document, "TrainingStartTime", 0);
  job.ended_unix_s = Whole(document, "TrainingEndTime", 0);
  job.max_run_s = Whole(Mapping(document, "StoppingCondition"), "MaxRuntimeInSeconds", 0);
  job.training_s = Whole(document, "TrainingTimeInSeconds", -1);
  job.billable_s = Whole(document, "BillableTimeInSeconds", -1);
  const Json pool = Mapping(document, "WarmPoolStatus");
  job.warm_pool = Text(pool, "Status");
  job.warm_pool_billable_s = Whole(pool, "ResourceRetainedBillableTimeInSeconds", -1);
  if (const auto list = document.find("SecondaryStatusTransitions"); list != document.end() && list->is_array()) {
    for (const Json& each : *list) {
      if (!each.is_object()) continue;
      job.transitions.push_back(
          {Text(each, "Status"), Text(each, "StatusMessage"), Whole(each, "StartTime", 0), Whole(each, "EndTime", 0)});
    }
  }
  return job;
}

}  // namespace ridgeline::sagemaker
