#include "kubernetes/manifest.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "common/keys.h"
#include "common/remote_job.h"
#include "common/text.h"
#include "kubernetes/lint.h"
#include "kubernetes/merge.h"
#include "kubernetes/quantity.h"
#include "kubernetes/yaml.h"
#include "ridgeline/checksum.h"
#include "ridgeline/job_dir.h"
#include "ridgeline/json_fault.h"

namespace ridgeline::kubernetes {
namespace {

using plugin::Failure;
using plugin::Json;
namespace fs = std::filesystem;

constexpr const char* kJobMount = "/ridgeline/job";
constexpr const char* kManagerLabel = "app.kubernetes.io/managed-by";
constexpr const char* kJobLabel = "ridgeline.dev/job";
constexpr const char* kSweepLabel = "ridgeline.dev/sweep";
constexpr const char* kWorkMount = "/ridgeline/work";
constexpr const char* kSecretMount = "/ridgeline/secret";
constexpr const char* kSecretKey = "ranks";
constexpr const char* kProgramMount = "/ridgeline/program";  // exec and all that it needs, in another trainer's image
constexpr const char* kCarrier = "ridgeline-program";        // the container that copies it there
constexpr int kSecretMode = 0440;                            // the pod's own group is its fsGroup
constexpr const char* kSummaryFile = "/dev/termination-log";
constexpr int64_t kExecBytes = int64_t{64} << 20;            // for `ridgeline exec`, besides the trainer
constexpr int64_t kGraceS = 30;                              // time to end and report it
constexpr const char* kGpuShared = "1Gi";                    // size of /dev/shm, which NCCL uses
constexpr const char* kHostname = "kubernetes.io/hostname";  // a node label
constexpr const char* kRequired = "requiredDuringSchedulingIgnoredDuringExecution";
constexpr size_t kSweepTextBytes = 1024;
// A ConfigMap holds 1 MiB. `kubectl apply` also keeps all of it in an annotation, with escaped quotes, and annotations
// hold 256 KiB.
constexpr size_t kPartBytes = size_t{120} * 1024;

// Returns the label value that is nearest to `text`.
std::string LabelValue(const std::string& text) {
  std::string value;
  for (const char c : text.substr(0, kLabelBytes)) {
    const bool allowed = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
    value += allowed && static_cast<unsigned char>(c) < 0x80 ? c : '-';
  }
  const auto is_edge = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; };
  while (!value.empty() && is_edge(value.back())) value.pop_back();
  value.erase(value.begin(), std::find_if_not(value.begin(), value.end(), is_edge));
  return value;
}

// The job's folder as its pods see it.
std::string JobDir(const std::string& key) { return fmt::format("{}/jobs/{}", kWorkMount, key); }

// Escapes `text`, so that it arrives unchanged. In commands and values of variables, Kubernetes replaces $(NAME) by
// that variable, and $$ by $.
std::string Literally(const std::string& text) {
  std::string escaped;
  for (size_t i = 0; i < text.size(); ++i) {
    escaped += text[i];
    const char next = i + 1 < text.size() ? text[i + 1] : '\0';
    if (text[i] == '$' && (next == '$' || next == '(')) escaped += '$';
  }
  return escaped;
}

// Replaces {{job}} in texts by the job's name, and a text that is {{nodes}} by the number of its nodes.
void Expand(Json& value, const std::string& job, int64_t nodes) {
  constexpr std::string_view kJob = "{{job}}";
  if (value.is_structured()) {
    for (Json& item : value) Expand(item, job, nodes);
  } else if (value == "{{nodes}}") {
    value = nodes;
  } else if (value.is_string()) {
    auto text = value.get<std::string>();
    for (size_t at = 0; (at = text.find(kJob, at)) != std::string::npos; at += job.size()) {
      text.replace(at, kJob.size(), job);
    }
    value = std::move(text);
  }
}

class Maker {
 public:
  Maker(const Json& job, std::string_view job_file, const Options& options, const std::string& store)
      : job_(job), options_(options), name_(job.at("key").get<std::string>()) {
    has_job_file_ = plugin::ReadsJobFile(job);
    if (has_job_file_) parts_ = plugin::TextParts(job_file, kPartBytes);
    const auto sweep = job.value("sweep", std::string());
    labels_ = options.labels;
    labels_.emplace("app.kubernetes.io/name", "ridgeline");
    labels_.emplace("app.kubernetes.io/component", "benchmark");
    labels_.emplace("app.kubernetes.io/instance", name_);
    labels_[kManagerLabel] = "ridgeline";
    labels_[kJobLabel] = name_;
    if (const std::string value = LabelValue(sweep); !value.empty()) labels_[kSweepLabel] = value;
    if (!store.empty()) labels_[kStoreLabel] = store;
    annotations_ = options.annotations;
    annotations_["ridgeline.dev/sweep"] = plugin::OneLine(sweep, kSweepTextBytes);
    if (job.value("save_time_s", int64_t{0}) > 0 && options.output_claim.empty()) {
      throw Failure(Failure::Kind::kInvalidInput,
                    "launch: kubernetes: the sweep's checkpoint files would go with the pod that wrote them",
                    "keep them: output: {claim: NAME}, a PersistentVolumeClaim; or leave out checkpoint:");
    }
  }

  Manifests Make(std::string_view job_file, const std::string& secret) {
    Manifests made;
    made.file_name = plugin::FileNameOf(job_, options_.nodes);
    if (const Json amounts = Resources(); amounts.contains("memory")) {
      made.asks = fmt::format("{} of memory on each node", amounts.at("memory").get<std::string>());
      if (!SharedMemory().empty()) made.asks += fmt::format(", {} of it for /dev/shm (shared_memory)", SharedMemory());
    }
    made.name = name_;
    Json job = MakeJob();
    made.hash = Checksum(options_.kind->Make(job, options_.runtime).dump() + std::string(job_file));
    KeepOffNodes(job["spec"]["template"]["spec"]);  // after the hash: the nodes to avoid differ from run to run, and do
                                                    // not change what the Job runs
    job["metadata"]["annotations"][kHashAnnotation] = made.hash;
    Lint(job, *options_.kind);
    made.pod = job["spec"]["template"];
    made.job = options_.kind->Make(std::move(job), options_.runtime);
    for (size_t i = 0; i < parts_.size(); ++i) made.others.push_back(ConfigMap(i));
    if (options_.nodes > 1) {
      if (!options_.kind->makes_service) made.others.push_back(Service());
      made.others.push_back(Secret(secret));
    }
    for (const Json& object : options_.objects) made.others.push_back(Owned(object));
    return made;
  }

 private:
  std::string PartName(size_t i) const { return fmt::format("{}-{}", name_, i); }
  // The names sort in the parts' order.
  static std::string PartKey(size_t i) { return fmt::format("job-{:04}.json", i); }

  Json Metadata(const std::string& name) const {
    Json metadata = {{"name", name}, {"labels", labels_}, {"annotations", annotations_}};
    if (!options_.name_space.empty()) metadata["namespace"] = options_.name_space;
    return metadata;
  }

  Json ConfigMap(size_t i) const {
    return {{"apiVersion", "v1"},
            {"kind", "ConfigMap"},
            {"metadata", Metadata(PartName(i))},
            {"data", {{PartKey(i), parts_[i]}}}};
  }

  Json Service() const {
    Json pods = {{kJobLabel, name_}};
    if (!options_.kind->has_hostnames) pods[options_.kind->index] = "0";  // its name is that of rank 0
    return {{"apiVersion", "v1"},
            {"kind", "Service"},
            {"metadata", Metadata(name_)},
            {"spec",
             {{"clusterIP", "None"},
              // Rank 0 is looked up before any pod is ready.
              {"publishNotReadyAddresses", true},
              {"selector", std::move(pods)}}}};
  }

  Json Secret(const std::string& secret) const {
    return {{"apiVersion", "v1"},
            {"kind", "Secret"},
            {"metadata", Metadata(name_)},
            {"type", "Opaque"},
            {"stringData", {{kSecretKey, secret}}}};
  }

  // An object of the sweep's, with the job's name, and our labels and annotations besides its own.
  Json Owned(Json object) const {
    Expand(object, name_, options_.nodes);
    Json metadata = Metadata(name_);
    if (object.contains("metadata")) metadata.merge_patch(object.at("metadata"));
    object["metadata"] = std::move(metadata);
    return object;
  }

  Json MakeJob() const {
    Json job = {{"apiVersion", "batch/v1"}, {"kind", "Job"}, {"metadata", Metadata(name_)}};
    if (!options_.queue.empty()) job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = options_.queue;
    // A pod that the cluster takes away is not a failure of the Job. Any other failure is, and ends the Job, because a
    // silent retry biases a benchmark.
    const Json disrupted = {{"type", "DisruptionTarget"}, {"status", "True"}};
    const Json rule = {{"action", "Ignore"}, {"onPodConditions", Json::array({disrupted})}};
    Json spec = {{"backoffLimit", 0},
                 {"ttlSecondsAfterFinished", options_.ttl_s},
                 {"podFailurePolicy", {{"rules", Json::array({rule})}}},
                 {"template", Template()}};
    if (options_.nodes > 1) {
      spec["completionMode"] = "Indexed";
      spec["completions"] = options_.nodes;
      spec["parallelism"] = options_.nodes;
    }
    if (TimeLimitS() > 0) spec["activeDeadlineSeconds"] = TimeLimitS() + options_.start_limit_s;
    job["spec"] = std::move(spec);
    return job;
  }

  int64_t TimeLimitS() const { return job_.value("time_limit_s", int64_t{0}); }

  Json Template() const {
    Json spec = {{"restartPolicy", "Never"},
                 {"automountServiceAccountToken", false},
                 {"enableServiceLinks", false},
                 {"terminationGracePeriodSeconds", job_.value("save_time_s", int64_t{0}) + kGraceS},
                 {"securityContext",
                  {{"runAsNonRoot", options_.user != 0},
                   {"runAsUser", options_.user},
                   {"runAsGroup", options_.user},
                   {"fsGroup", options_.user},
                   {"fsGroupChangePolicy", "OnRootMismatch"},
                   {"seccompProfile", {{"type", "RuntimeDefault"}}}}},
                 {"containers", Json::array({Container()})},
                 {"volumes", Volumes()}};
    if (InTrainerImage()) spec["initContainers"] = Json::array({Carrier()});
    // The deadline includes the pod's start, which begins when it has its node.
    if (TimeLimitS() > 0) spec["activeDeadlineSeconds"] = TimeLimitS() + options_.idle_limit_s;
    if (options_.nodes > 1) spec["subdomain"] = name_;
    if (!options_.service_account.empty()) spec["serviceAccountName"] = options_.service_account;
    if (!options_.priority_class.empty()) spec["priorityClassName"] = options_.priority_class;
    if (!options_.node_selector.empty()) spec["nodeSelector"] = options_.node_selector;
    Json tolerations = options_.tolerations;
    if (options_.gpus > 0) {
      tolerations.push_back({{"key", options_.gpu_resource}, {"operator", "Exists"}, {"effect", "NoSchedule"}});
    }
    if (!tolerations.empty()) spec["tolerations"] = std::move(tolerations);
    for (const std::string& secret : options_.image_pull_secrets) {
      spec["imagePullSecrets"].push_back({{"name", secret}});
    }
    Json made = {{"metadata", {{"labels", labels_}, {"annotations", annotations_}}}, {"spec", std::move(spec)}};
    if (!options_.patch.is_null()) {
      Json patch = options_.patch;
      Expand(patch, name_, options_.nodes);
      made = MergeTemplate(made, patch);
    }
    try {
      Place(made["spec"]);
    } catch (const Json::exception& e) {
      throw NoAffinity(e);
    }
    return made;
  }

  // The patch has changed the structure.
  static Failure NoAffinity(const Json::exception& error) {
    return {Failure::Kind::kInvalidInput,
            fmt::format("launch: kubernetes: patch: makes no affinity: {}", JsonFault(error))};
  }

  // Keeps pods off nodes with certain other pods, in addition to what a patch says.
  void Place(Json& spec) const {
    Json affinity = spec.value("affinity", Json::object());
    const auto pods = [](const char* label, const std::string& value, const std::string& topology) -> Json {
      return {{"labelSelector", {{"matchLabels", {{label, value}}}}}, {"topologyKey", topology}};
    };
    if (options_.exclusive) {
      Json of_ours = pods(kManagerLabel, "ridgeline", kHostname);
      of_ours["namespaceSelector"] = Json::object();  // in every namespace
      affinity["podAntiAffinity"][kRequired].push_back(std::move(of_ours));
    }
    if (options_.nodes > 1) {
      affinity["podAntiAffinity"][kRequired].push_back(pods(kJobLabel, name_, kHostname));
      if (!options_.same_topology.empty()) {
        affinity["podAffinity"][kRequired].push_back(pods(kJobLabel, name_, options_.same_topology));
      }
    }
    if (!affinity.empty()) spec["affinity"] = std::move(affinity);
  }

  // Keeps pods off these nodes entirely.
  void KeepOffNodes(Json& spec) const {
    const Json avoid = job_.value("avoid", Json::array());
    if (avoid.empty()) return;
    try {
      Json& terms = spec["affinity"]["nodeAffinity"][kRequired]["nodeSelectorTerms"];
      if (terms.empty()) terms = Json::array({Json::object()});
      // A node is accepted if one of the terms matches.
      for (Json& term : terms) {
        term["matchExpressions"].push_back({{"key", kHostname}, {"operator", "NotIn"}, {"values", avoid}});
      }
    } catch (const Json::exception& e) {
      throw NoAffinity(e);
    }
  }

  // Ridgeline's own trainer is in Ridgeline's image.
  bool InTrainerImage() const { return !options_.trainer_image.empty() && !job_.value("own_trainer", false); }

  // Copies exec from Ridgeline's image to its place in the trainer's image. Asks for no more than the container that
  // follows: a pod has the best class only if all of its containers have.
  Json Carrier() const {
    const Json all = Resources();
    Json amounts = Json::object();
    for (const char* name : {"cpu", "memory", "ephemeral-storage"}) {
      if (all.contains(name)) amounts[name] = all.at(name);
    }
    Json container = {{"name", kCarrier},
                      {"image", options_.image},
                      {"command", {Literally(options_.program), "exec", "--carry-to", kProgramMount}},
                      {"volumeMounts", Json::array({{{"name", "program"}, {"mountPath", kProgramMount}}})},
                      {"resources", {{"limits", amounts}, {"requests", amounts}}},
                      {"terminationMessagePolicy", "FallbackToLogsOnError"},
                      {"securityContext",
                       {{"allowPrivilegeEscalation", false},
                        {"readOnlyRootFilesystem", true},
                        {"capabilities", {{"drop", {"ALL"}}}}}}};
    if (!options_.image_pull_policy.empty()) container["imagePullPolicy"] = options_.image_pull_policy;
    return container;
  }

  Json Container() const {
    Json capabilities = {{"drop", {"ALL"}}};
    // To register memory with a network interface. Only root can use a capability.
    if (options_.user == 0 && (options_.efa > 0 || !options_.devices.empty())) capabilities["add"] = {"IPC_LOCK"};
    Json container = {{"name", kContainer},
                      {"image", InTrainerImage() ? options_.trainer_image : options_.image},
                      {"command", Command()},
                      {"env", Environment()},
                      {"volumeMounts", Mounts()},
                      {"terminationMessagePolicy", "FallbackToLogsOnError"},
                      {"securityContext",
                       {{"allowPrivilegeEscalation", false},
                        // Programs in other images may write beside themselves.
                        {"readOnlyRootFilesystem", !InTrainerImage()},
                        {"capabilities", std::move(capabilities)}}}};
    if (!options_.image_pull_policy.empty()) container["imagePullPolicy"] = options_.image_pull_policy;
    // Requests equal limits: a benchmark shares nothing, and guaranteed pods are evicted last.
    if (const Json amounts = Resources(); !amounts.empty()) {
      container["resources"] = {{"limits", amounts}, {"requests", amounts}};
    }
    return container;
  }

  // The command, with the image's program instead of this machine's, and the job file at its mount.
  Json Command() const {
    plugin::Elsewhere there = {{options_.program}, kJobMount, JobDir(name_), kSummaryFile};
    if (InTrainerImage()) {
      // The image's C library may be older than ours. The loader that was copied along uses the libraries beside it.
      there.program = {fmt::format("{}/ld.so", kProgramMount), "--library-path", kProgramMount,
                       fmt::format("{}/ridgeline", kProgramMount)};
    }
    Json command = Json::array();
    for (const std::string& word : plugin::ExecThere(job_, there)) command.push_back(Literally(word));
    return command;
  }

  Json Environment() const {
    Json env =
        Json::array({{{"name", "HOME"}, {"value", "/tmp"}},
                     {{"name", kNodeVariable}, {"valueFrom", {{"fieldRef", {{"fieldPath", "spec.nodeName"}}}}}}});
    if (options_.nodes > 1) {
      env.push_back({{"name", "RIDGELINE_NNODES"}, {"value", std::to_string(options_.nodes)}});
      env.push_back(
          {{"name", "RIDGELINE_NODE_RANK"},
           {"valueFrom",
            {{"fieldRef",
              {{"fieldPath", fmt::format("metadata.{}['{}']", options_.kind->index_is_label ? "labels" : "annotations",
                                         options_.kind->index)}}}}}});
      env.push_back({{"name", "MASTER_ADDR"}, {"value", options_.kind->RankZero(name_)}});
      env.push_back({{"name", "MASTER_PORT"}, {"value", std::to_string(kMasterPort)}});
      env.push_back({{"name", "RIDGELINE_SECRET_FILE"}, {"value", fmt::format("{}/{}", kSecretMount, kSecretKey)}});
    }
    for (const auto& [name, value] : options_.env) env.push_back({{"name", name}, {"value", Literally(value)}});
    return env;
  }

  std::string SharedMemory() const {
    return options_.shared_memory.empty() && options_.gpus > 0 ? kGpuShared : options_.shared_memory;
  }

  Json Resources() const {
    Json amounts = Json::object();
    if (const auto cpus = job_.value("cpus", int64_t{0}); !options_.cpu.empty()) {
      amounts["cpu"] = options_.cpu;
    } else if (cpus > 0) {
      amounts["cpu"] = std::to_string(cpus);
    }
    if (const auto bytes = job_.value("memory_bytes", int64_t{0}); !options_.memory.empty()) {
      amounts["memory"] = options_.memory;
    } else if (bytes > 0) {
      const double shared = ParseQuantity(SharedMemory()).value_or(0);
      amounts["memory"] = FormatBytes(bytes + kExecBytes + static_cast<int64_t>(shared));
    }
    if (options_.gpus > 0) amounts[options_.gpu_resource] = std::to_string(options_.gpus);
    if (options_.efa > 0) amounts["vpc.amazonaws.com/efa"] = std::to_string(options_.efa);
    for (const auto& [resource, count] : options_.devices) amounts[resource] = std::to_string(count);
    amounts["ephemeral-storage"] = options_.ephemeral_storage;
    for (const auto& [page, amount] : options_.hugepages) amounts["hugepages-" + page] = amount;
    return amounts;
  }

  bool IsMounted(const std::string& path) const {
    return std::any_of(options_.volumes.begin(), options_.volumes.end(),
                       [&](const Mount& mount) { return mount.path == path; });
  }

  Json Mounts() const {
    Json mounts = Json::array();
    const auto add = [&](const char* name, const char* path) {
      if (!IsMounted(path)) mounts.push_back({{"name", name}, {"mountPath", path}});
    };
    if (has_job_file_) mounts.push_back({{"name", "job"}, {"mountPath", kJobMount}, {"readOnly", true}});
    if (options_.nodes > 1) {
      mounts.push_back({{"name", "ranks-secret"}, {"mountPath", kSecretMount}, {"readOnly", true}});
    }
    mounts.push_back({{"name", "work"}, {"mountPath", kWorkMount}});
    if (!options_.output_sub_path.empty()) mounts.back()["subPath"] = options_.output_sub_path;
    if (InTrainerImage()) mounts.push_back({{"name", "program"}, {"mountPath", kProgramMount}, {"readOnly", true}});
    add("tmp", "/tmp");
    if (!SharedMemory().empty()) add("shared-memory", "/dev/shm");
    for (const Mount& mount : options_.volumes) {
      Json entry = {{"name", mount.volume.at("name")}, {"mountPath", mount.path}};
      if (!mount.sub_path.empty()) entry["subPath"] = mount.sub_path;
      if (mount.read_only) entry["readOnly"] = true;
      mounts.push_back(std::move(entry));
    }
    return mounts;
  }

  Json Volumes() const {
    Json volumes = Json::array();
    if (has_job_file_) {
      Json sources = Json::array();
      for (size_t i = 0; i < parts_.size(); ++i) sources.push_back({{"configMap", {{"name", PartName(i)}}}});
      volumes.push_back({{"name", "job"}, {"projected", {{"sources", std::move(sources)}}}});
    }
    if (options_.nodes > 1) {
      volumes.push_back({{"name", "ranks-secret"}, {"secret", {{"secretName", name_}, {"defaultMode", kSecretMode}}}});
    }
    const Json folder = {{"sizeLimit", options_.ephemeral_storage}};
    Json work = {{"name", "work"}, {"emptyDir", folder}};
    if (!options_.output_claim.empty()) {
      work = {{"name", "work"}, {"persistentVolumeClaim", {{"claimName", options_.output_claim}}}};
    }
    volumes.push_back(std::move(work));
    if (InTrainerImage()) volumes.push_back({{"name", "program"}, {"emptyDir", folder}});
    if (!IsMounted("/tmp")) volumes.push_back({{"name", "tmp"}, {"emptyDir", folder}});
    if (!SharedMemory().empty() && !IsMounted("/dev/shm")) {
      volumes.push_back(
          {{"name", "shared-memory"}, {"emptyDir", {{"medium", "Memory"}, {"sizeLimit", SharedMemory()}}}});
    }
    for (const Mount& mount : options_.volumes) {
      const bool known =
          std::any_of(volumes.begin(), volumes.end(), [&](const Json& volume) { return volume == mount.volume; });
      if (!known) volumes.push_back(mount.volume);
    }
    return volumes;
  }

  const Json& job_;
  const Options& options_;
  std::string name_;
  bool has_job_file_ = false;
  std::vector<std::string> parts_;
  std::map<std::string, std::string> labels_;
  std::map<std::string, std::string> annotations_;
};

}  // namespace

Manifests MakeManifests(const Json& job, std::string_view job_file, const Options& options, const std::string& store,
                        const std::string& secret) {
  const Options own = OptionsOf(job, options);
  if (own.image.empty()) {
    throw Failure(Failure::Kind::kInvalidInput, "launch: kubernetes: names no image",
                  "image: REGISTRY/ridgeline@sha256:…, built from the Containerfile that ships with Ridgeline");
  }
  const std::string for_pods = plugin::JobFileFor(job_file, JobDir(job.at("key").get<std::string>()), kWorkMount);
  return Maker(job, for_pods, own, store).Make(for_pods, secret);
}

std::string FetchCommand(const std::vector<Manifests>& all, const Options& options) {
  if (all.empty() || !options.output_path.empty()) return {};
  const Json& labels = all.front().job.at("metadata").at("labels");
  const char* const label = labels.contains(kSweepLabel) ? kSweepLabel : kManagerLabel;
  return fmt::format("kubectl logs{} --selector={}={} --tail=-1 --max-log-requests=1000 >DIR/pods.log",
                     options.name_space.empty() ? "" : " --namespace=" + options.name_space, label,
                     labels.at(label).get<std::string>());
}

Json ManifestFiles(const std::vector<Manifests>& all) {
  Json files = Json::array();
  Json names = Json::array();
  for (const Manifests& made : all) {
    std::string text = ToYaml(made.job);
    for (const Json& other : made.others) text = ToYaml(other) + "---\n" + text;
    names.push_back(made.file_name + ".yaml");
    files.push_back({{"name", names.back()}, {"content", std::move(text)}});
  }
  if (files.empty()) return files;
  // This is kustomize's other name for the file: `kubectl create -f DIR` would take a kustomization.yaml for a
  // manifest.
  files.push_back(
      {{"name", "Kustomization"},
       {"content",
        ToYaml({{"apiVersion", "kustomize.config.k8s.io/v1beta1"}, {"kind", "Kustomization"}, {"resources", names}})}});
  return files;
}

}  // namespace ridgeline::kubernetes
