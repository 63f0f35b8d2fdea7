#include "kubernetes/describe.h"

#include <fmt/format.h>

namespace ridgeline::kubernetes {
namespace {

using plugin::Json;

constexpr const char* kHostLabel = "kubernetes.io/hostname";

// Keeps other labels that the settings select nodes by.
Json PinTo(const std::string& node, const Json& own) {
  const Json selector = own.value("node_selector", Json::object());
  if (!selector.is_object() || selector.contains(kHostLabel)) return Json::object();
  return {{"node_selector", {{kHostLabel, node}}}};
}

}  // namespace

plugin::Description DescribeJob(const plugin::JobToDescribe& job) {
  plugin::Description description;
  description.gpus = plugin::ReadGpusSetting(job.own, "kubernetes");
  description.memory_bytes = plugin::BytesOfSetting(job.own, "memory");
  description.secrets = "take it from a Secret with patch: (docs/kubernetes.md)";
  if (!job.trainer.empty() && !job.own.empty() && !job.own.contains("trainer_image")) {
    description.warnings.push_back(
        fmt::format("kubernetes: without trainer_image, {} runs in image, which then has to have it beside ridgeline",
                    job.trainer));
  }
  // A queue of Slurm's has a limit of its own, and local jobs run in view of the user.
  if (!job.has_time_limit) {
    description.warnings.emplace_back(
        "kubernetes: points have no time_limit, and nothing else ends one that hangs: it keeps its nodes until "
        "somebody deletes its Job");
  }
  if (!job.node.empty()) description.pin = PinTo(job.node, job.own);
  return description;
}

}  // namespace ridgeline::kubernetes
