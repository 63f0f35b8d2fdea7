#include "sagemaker/describe.h"

namespace ridgeline::sagemaker {

// A job has whole instances, with all of their GPUs and memory.
plugin::Description DescribeJob(const plugin::JobToDescribe& job) {
  plugin::Description description;
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
