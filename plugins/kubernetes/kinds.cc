#include "kubernetes/kinds.h"

#include <algorithm>
#include <span>
#include <utility>

#include <fmt/format.h>

namespace ridgeline::kubernetes {
namespace {

using plugin::Json;

constexpr const char* kPyTorchContainer = "pytorch";
constexpr const char* kClusterRuntime = "ClusterTrainingRuntime";
constexpr const char* kTrainer = "trainer.kubeflow.org/v1alpha1";
// The name of a JobSet's one replicated job. Kubeflow Trainer wants it for that job and for its container.
constexpr const char* kNode = "node";

Json Itself(Json job, const std::string&) { return job; }

// Returns the number of pods that run a batch/v1 Job together.
int64_t PodsOf(const Json& spec) { return spec.value("completions", int64_t{1}); }

Json Take(Json& object, const char* name) {
  Json value = object.value(name, Json());
  object.erase(name);
  return value;
}

// A JobSet of one replicated job, which is that Job. Without a failure policy a JobSet does not say why its Job failed,
// so it has one with a rule: the end at the deadline has a reason of its own. Nothing is restarted.
Json WrapJobSet(Json job, const std::string&) {
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
      {"replicatedJobs", Json::array({{{"name", kNode}, {"replicas", 1}, {"template", {{"spec", std::move(spec)}}}}})}};
  return job;
}

// A PyTorchJob of workers alone. With a master, the operator would put an init container of an image of its own before
// the workers, and would take the master's end for that of all. It fails with its first pod and restarts none.
Json WrapPyTorchJob(Json job, const std::string&) {
  Json spec = Take(job, "spec");
  Json policy = {{"cleanPodPolicy", "Running"}};
  for (const char* name : {"ttlSecondsAfterFinished", "activeDeadlineSeconds"}) {
    if (spec.contains(name)) policy[name] = spec.at(name);
  }
  Json pods = Take(spec, "template");
  pods["spec"].erase("restartPolicy");  // stands beside the template
  pods["spec"].erase("subdomain");
  for (Json& container : pods["spec"]["containers"]) {
    if (container.at("name") == kContainer) container["name"] = kPyTorchContainer;
  }
  job["spec"] = {
      {"runPolicy", std::move(policy)},
      {"pytorchReplicaSpecs",
       {{"Worker", {{"replicas", PodsOf(spec)}, {"restartPolicy", "Never"}, {"template", std::move(pods)}}}}}};
  return job;
}

// Moves the named fields of an object to another.
void MoveFields(Json& from, std::span<const char* const> names, Json& to) {
  for (const char* name : names) {
    if (from.contains(name)) to[name] = Take(from, name);
  }
}

// Throws if a field is left that a TrainJob cannot say. `of_runtime`: those that our runtime says, too.
void RequireNothingLeft(const Json& left, std::span<const char* const> of_runtime, const char* whose) {
  for (const auto& [name, value] : left.items()) {
    if (std::ranges::find(of_runtime, name) != of_runtime.end()) continue;
    throw plugin::Failure(plugin::Failure::Kind::kInvalidInput,
                          fmt::format("launch: kubernetes: a TrainJob cannot say {} of its {}", name, whose),
                          "its runtime can: put it into a copy of training-runtime.yaml, and name that by runtime:");
  }
}

// A TrainJob that says what runs, and patches its runtime's pods. Everything else is the runtime's, which
// deploy/training-runtime.yaml has.
Json WrapTrainJob(Json job, const std::string& runtime) {
  constexpr std::array kOfPod = {"serviceAccountName", "volumes",  "imagePullSecrets", "securityContext",
                                 "nodeSelector",       "affinity", "tolerations",      "terminationGracePeriodSeconds"};
  constexpr std::array kPodsRuntime = {"restartPolicy", "automountServiceAccountToken", "enableServiceLinks",
                                       "subdomain", "activeDeadlineSeconds"};
  constexpr std::array kOfTrainer = {"image", "command", "args", "env"};
  constexpr std::array kOfContainer = {"volumeMounts", "securityContext"};
  constexpr std::array kContainersRuntime = {"name", "terminationMessagePolicy"};
  Json spec = Take(job, "spec");
  Json pods = Take(spec, "template");
  Json pod = Take(pods, "spec");
  Json trainer = {{"numNodes", PodsOf(spec)}};
  Json patch = {{"name", kNode}};
  Json others = Json::array();
  for (Json& container : pod["containers"]) {
    if (container.at("name") != kContainer) {
      others.push_back(container);
      continue;
    }
    MoveFields(container, kOfTrainer, trainer);
    MoveFields(container, kOfContainer, patch);
    if (container.contains("resources")) trainer["resourcesPerNode"] = Take(container, "resources");
    RequireNothingLeft(container, kContainersRuntime, "container");
  }
  pod.erase("containers");
  if (!others.empty()) pod["containers besides ridgeline"] = std::move(others);
  Json pod_patch = {{"containers", Json::array({std::move(patch)})}};
  MoveFields(pod, kOfPod, pod_patch);
  RequireNothingLeft(pod, kPodsRuntime, "pods");
  pods["spec"] = std::move(pod_patch);
  const Json replicated = {{"name", kNode}, {"template", {{"spec", {{"template", std::move(pods)}}}}}};
  const Runtime of = ParseRuntime(runtime);
  job["spec"] = {{"runtimeRef", {{"apiGroup", "trainer.kubeflow.org"}, {"kind", of.kind}, {"name", of.name}}},
                 {"trainer", std::move(trainer)},
                 {"runtimePatches",
                  Json::array({{{"manager", "ridgeline.dev/launcher"},
                                {"trainingRuntimeSpec",
                                 {{"template", {{"spec", {{"replicatedJobs", Json::array({replicated})}}}}}}}}})}};
  if (spec.contains("activeDeadlineSeconds")) job["spec"]["activeDeadlineSeconds"] = spec.at("activeDeadlineSeconds");
  return job;
}

constexpr std::array<Kind, 4> kKinds = {{
    {.setting = "job",
     .name = "Job",
     .api_version = "batch/v1",
     .plural = "jobs",
     .container = kContainer,
     .infix = "",
     .index = kIndexAnnotation,
     .index_is_label = false,
     .makes_service = false,
     .has_hostnames = true,
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
     .container = kContainer,
     .infix = "-node-0",
     .index = kIndexAnnotation,
     .index_is_label = false,
     .makes_service = true,
     .has_hostnames = true,
     .suspend = "/spec/suspend",
     .deadline = "/spec/replicatedJobs/0/template/spec/activeDeadlineSeconds",
     .pods = "/spec/replicatedJobs/0/template/spec/completions",
     .ttl = "/spec/ttlSecondsAfterFinished",
     .complete = "Completed",
     .deadline_reason = "FailJobSetFailurePolicyAction",
     .refusals = {{{"JobSet", "JobCreationFailed"}, {"Job", "FailedCreate"}}},
     .wrap = WrapJobSet},
    {.setting = "pytorchjob",
     .name = "PyTorchJob",
     .api_version = "kubeflow.org/v1",
     .plural = "pytorchjobs",
     .container = kPyTorchContainer,
     .infix = "-worker",
     .index = "training.kubeflow.org/replica-index",
     .index_is_label = true,
     .makes_service = false,
     .has_hostnames = false,
     .suspend = "/spec/runPolicy/suspend",
     .deadline = "/spec/runPolicy/activeDeadlineSeconds",
     .pods = "/spec/pytorchReplicaSpecs/Worker/replicas",
     .ttl = "/spec/runPolicy/ttlSecondsAfterFinished",
     .complete = "Succeeded",
     .deadline_reason = nullptr,
     .refusals = {{{"PyTorchJob", "FailedCreatePod"}}},
     .wrap = WrapPyTorchJob},
    {.setting = "trainjob",
     .name = "TrainJob",
     .api_version = kTrainer,
     .plural = "trainjobs",
     .container = kNode,
     .infix = "-node-0",
     .index = kIndexAnnotation,
     .index_is_label = false,
     .makes_service = true,
     .has_hostnames = true,
     .suspend = "/spec/suspend",
     .deadline = "/spec/activeDeadlineSeconds",
     .pods = "/spec/trainer/numNodes",
     .ttl = nullptr,
     .complete = "Complete",
     .deadline_reason = "DeadlineExceeded",
     .refusals =
         {{{"TrainJob", "TrainJobResourcesCreationFailed"}, {"JobSet", "JobCreationFailed"}, {"Job", "FailedCreate"}}},
     .wrap = WrapTrainJob},
}};

}  // namespace

Json Kind::Make(Json job, const std::string& runtime) const {
  Json made = wrap(std::move(job), runtime);
  made["apiVersion"] = api_version;
  made["kind"] = name;
  return made;
}

std::string Runtime::Path(const std::string& name_space) const {
  if (kind == kClusterRuntime) return fmt::format("/apis/{}/clustertrainingruntimes/{}", kTrainer, name);
  return fmt::format("/apis/{}/namespaces/{}/trainingruntimes/{}", kTrainer, name_space, name);
}

Runtime ParseRuntime(const std::string& text) {
  constexpr std::string_view kHere = "TrainingRuntime/";
  if (text.starts_with(kHere)) return {"TrainingRuntime", text.substr(kHere.size())};
  return {kClusterRuntime, text};
}

std::string WhyNot(const Json& runtime) {
  const Json set = runtime.value("/spec/template/spec"_json_pointer, Json::object());
  if (set.value("/failurePolicy/maxRestarts"_json_pointer, int64_t{0}) > 0) return "its failurePolicy restarts";
  for (const Json& replicated : set.value("replicatedJobs", Json::array())) {
    if (replicated.value("name", "") != kNode) continue;
    const Json job = replicated.value("/template/spec"_json_pointer, Json::object());
    if (job.value("/template/spec/restartPolicy"_json_pointer, "") != "Never") return "its restartPolicy is not Never";
    if (job.value("backoffLimit", int64_t{-1}) != 0) return "its backoffLimit is not 0";
    return {};
  }
  return "it has no replicated job named node";
}

std::string Kind::group() const {
  const std::string_view text = api_version;
  return std::string(text.substr(0, text.find('/')));
}

std::string Kind::Path(const std::string& name_space) const {
  return fmt::format("/apis/{}/namespaces/{}/{}", api_version, name_space, plural);
}

std::string Kind::RankZero(const std::string& job) const {
  return has_hostnames ? fmt::format("{0}{1}-0.{0}", job, infix) : job;
}

const std::array<Kind, 4>& Kinds() { return kKinds; }

const Kind& JobKind() { return kKinds.front(); }

const Kind* FindKind(std::string_view setting) {
  const auto found =
      std::ranges::find(kKinds, setting, [](const Kind& kind) { return std::string_view(kind.setting); });
  return found == kKinds.end() ? nullptr : &*found;
}

}  // namespace ridgeline::kubernetes
