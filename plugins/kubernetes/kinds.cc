#include "kubernetes/kinds.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace ridgeline::kubernetes {
namespace {

using plugin::Json;

constexpr const char* kReplicatedJob = "node";  // the name of a JobSet's one replicated job

Json Itself(Json job) { return job; }

// Returns the number of pods that run a batch/v1 Job together.
int64_t PodsOf(const Json& spec) { return spec.value("completions", int64_t{1}); }

Json Take(Json& object, const char* name) {
  Json value = object.value(name, Json());
  object.erase(name);
  return value;
}

// A JobSet of one replicated job, which is that Job. Without a failure policy a JobSet does not say why its Job failed,
// so it has one with a rule: the end at the deadline has a reason of its own. Nothing is restarted.
Json WrapJobSet(Json job) {
  Json spec = Take(job, "spec");
  const Json ttl_s = Take(spec, "ttlSecondsAfterFinished");
  // Otherwise a JobSet's webhook would make it Indexed, and leave the number open.
  const int64_t pods = PodsOf(spec);
  spec.update({{"completionMode", "Indexed"}, {"completions", pods}, {"parallelism", pods}});
  const Json rule = {
      {"name", "deadline"}, {"action", "FailJobSet"}, {"onJobFailureReasons", Json::array({"DeadlineExceeded"})}};
  job["spec"] = {
      {"failurePolicy", {{"maxRestarts", 0}, {"rules", Json::array({rule})}}},
      {"ttlSecondsAfterFinished", ttl_s},
      {"replicatedJobs",
       Json::array({{{"name", kReplicatedJob}, {"replicas", 1}, {"template", {{"spec", std::move(spec)}}}}})}};
  return job;
}

constexpr std::array<Kind, 2> kKinds = {{
    {.setting = "job",
     .name = "Job",
     .api_version = "batch/v1",
     .plural = "jobs",
     .container = "ridgeline",
     .infix = "",
     .index = kIndexAnnotation,
     .index_is_label = false,
     .makes_service = false,
     .suspend = "/spec/suspend",
     .deadline = "/spec/activeDeadlineSeconds",
     .pods = "/spec/completions",
     .ttl = "/spec/ttlSecondsAfterFinished",
     .complete = "Complete",
     .deadline_reason = "DeadlineExceeded",
     .refusals = {{{"Job", "FailedCreate"}}},
     .wrap = Itself},
    {.setting = "jobset",
     .name = "JobSet",
     .api_version = "jobset.x-k8s.io/v1alpha2",
     .plural = "jobsets",
     .container = "ridgeline",
     .infix = "-node-0",
     .index = kIndexAnnotation,
     .index_is_label = false,
     .makes_service = true,
     .suspend = "/spec/suspend",
     .deadline = "/spec/replicatedJobs/0/template/spec/activeDeadlineSeconds",
     .pods = "/spec/replicatedJobs/0/template/spec/completions",
     .ttl = "/spec/ttlSecondsAfterFinished",
     .complete = "Completed",
     .deadline_reason = "FailJobSetFailurePolicyAction",
     .refusals = {{{"JobSet", "JobCreationFailed"}, {"Job", "FailedCreate"}}},
     .wrap = WrapJobSet},
}};

}  // namespace

Json Kind::Make(Json job) const {
  Json made = wrap(std::move(job));
  made["apiVersion"] = api_version;
  made["kind"] = name;
  return made;
}

std::string Kind::group() const {
  const std::string_view text = api_version;
  return std::string(text.substr(0, text.find('/')));
}

std::string Kind::Path(const std::string& name_space) const {
  return fmt::format("/apis/{}/namespaces/{}/{}", api_version, name_space, plural);
}

std::string Kind::RankZero(const std::string& job) const { return fmt::format("{0}{1}-0.{0}", job, infix); }

const std::array<Kind, 2>& Kinds() { return kKinds; }

const Kind& JobKind() { return kKinds.front(); }

const Kind* FindKind(std::string_view setting) {
  const auto found =
      std::ranges::find(kKinds, setting, [](const Kind& kind) { return std::string_view(kind.setting); });
  return found == kKinds.end() ? nullptr : &*found;
}

}  // namespace ridgeline::kubernetes
