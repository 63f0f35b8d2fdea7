#include "slurm/describe.h"

#include <algorithm>

namespace ridgeline::slurm {
namespace {

using plugin::Json;

plugin::GpusAsked GpusOf(const Json& own) {
  plugin::GpusAsked asked = plugin::ReadGpusSetting(own, "slurm");
  if (own.contains("gpus")) return asked;
  if (const Json gres = own.value("gres", Json()); gres.is_string()) {
    const auto text = gres.get<std::string>();
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find(',', at), text.size());
      const std::string item = text.substr(at, end - at);
      if (item == "gpu") asked.count = 1;
      if (item.starts_with("gpu:")) plugin::ReadGpus(item.substr(4), asked);
      if (item == "gpu" || item.starts_with("gpu:")) {
        asked.setting = "slurm: gres";
        asked.asked = "gres asks for " + text;
      }
      at = end + 1;
    }
  }
  const Json passed_on = own.value("sbatch", Json());
  if (!passed_on.is_object()) return asked;
  for (const auto& [option, value] : passed_on.items()) {
    if (!option.starts_with("gpus") && option != "ntasks-per-gpu") continue;
    asked.setting = "slurm: sbatch";
    asked.asked = "sbatch asks for GPUs";
  }
  return asked;
}

}  // namespace

plugin::Description DescribeJob(const plugin::JobToDescribe& job) {
  plugin::Description description;
  description.has_srun = true;
  description.gpus = GpusOf(job.own);
  description.memory_bytes = plugin::BytesOfSetting(job.own, "memory");
  if (job.own.contains("container_mounts") && !job.own.contains("container")) {
    description.warnings.emplace_back("slurm: container_mounts is of no use without container, which names the image");
  }
  if (!job.node.empty()) {
    description.pin = job.own.contains("nodelist") ? Json::object() : Json{{"nodelist", job.node}};
  }
  return description;
}

}  // namespace ridgeline::slurm
