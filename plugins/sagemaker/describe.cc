#include "sagemaker/describe.h"

#include "sagemaker/config.h"
#include "sagemaker/request.h"

namespace ridgeline::sagemaker {
namespace {

using plugin::Json;

constexpr int64_t kEndS = 900;  // assumed: the 120 s in which a job may stop, and the upload of what it leaves

// A plan is paid whether its instances are used or not. Groups of instances have a price each.
std::optional<plugin::Billed> BilledFor(const plugin::JobToDescribe& job) {
  try {
    const Options options = ReadOptions({{"sagemaker", job.own}});
    Json request = {
        {"ResourceConfig",
         {{"InstanceCount", options.nodes > 0 ? options.nodes : job.nodes},
          {"KeepAlivePeriodInSeconds", options.keep_alive_s}}},
        {"StoppingCondition", {{"MaxRuntimeInSeconds", MaxRunS({{"time_limit_s", job.time_limit_s}}, options)}}}};
    if (!options.request.is_null()) request.merge_patch(options.request);
    const Json& resources = request.at("ResourceConfig");
    if (!options.training_plan.empty() || resources.contains("TrainingPlanArn")) return {};
    if (resources.contains("InstanceGroups")) return {};
    return plugin::Billed{resources.at("InstanceCount").get<int64_t>(),
                          request.at("StoppingCondition").at("MaxRuntimeInSeconds").get<int64_t>() + kEndS +
                              resources.value("KeepAlivePeriodInSeconds", int64_t{0})};
  } catch (const plugin::Failure&) {
    return {};  // whoever opens the launcher is told
  } catch (const Json::exception&) {
    return {};  // the user's request takes it away, or is refused
  }
}

}  // namespace

// A job has whole instances, with all of their GPUs and memory.
plugin::Description DescribeJob(const plugin::JobToDescribe& job) {
  plugin::Description description;
  description.billed = BilledFor(job);
  description.secrets = "give role: the right to read it from Secrets Manager; variables are shown to all who may look";
  if (!job.has_time_limit) {
    description.warnings.emplace_back(
        "sagemaker: points have no time_limit, so one that hangs is paid until max_run, a day if that is not given");
  }
  const auto image = job.own.find("image");
  if (image != job.own.end() && image->is_string() && image->get<std::string>().find("@sha256:") == std::string::npos) {
    description.warnings.emplace_back(
        "sagemaker: image has no digest (@sha256:…), so a sweep that is continued may run another one");
  }
  return description;
}

}  // namespace ridgeline::sagemaker
