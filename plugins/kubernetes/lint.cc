#include "kubernetes/lint.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "kubernetes/manifest.h"
#include "kubernetes/quantity.h"
#include "ridgeline/json_fault.h"

namespace ridgeline::kubernetes {
namespace {

using plugin::Failure;
using plugin::Json;

constexpr size_t kSubdomainBytes = 253;
constexpr size_t kAnnotationsBytes = size_t{256} * 1024;

[[noreturn]] void Refuse(const std::string& where, const Json& value, const std::string& must,
                         const std::string& hint = {}) {
  throw Failure(Failure::Kind::kInvalidInput,
                fmt::format("launch: kubernetes: {} would be {}, and must be {}", where, value.dump(), must), hint);
}

bool Matches(const std::string& text, const char* pattern) { return std::regex_match(text, std::regex(pattern)); }

bool IsDnsLabel(const std::string& text) {
  return text.size() <= kLabelBytes && Matches(text, "[a-z0-9]([-a-z0-9]*[a-z0-9])?");
}
bool IsSubdomain(const std::string& text) {
  return text.size() <= kSubdomainBytes && Matches(text, "[a-z0-9]([-.a-z0-9]*[a-z0-9])?");
}
bool IsLabelValue(const std::string& text) {
  return text.size() <= kLabelBytes && Matches(text, "([A-Za-z0-9]([-._A-Za-z0-9]*[A-Za-z0-9])?)?");
}
// "[prefix/]name": the form of labels, annotations and resources.
bool IsQualifiedName(const std::string& text) {
  const size_t slash = text.find('/');
  const std::string name = slash == std::string::npos ? text : text.substr(slash + 1);
  return !name.empty() && IsLabelValue(name) && (slash == std::string::npos || IsSubdomain(text.substr(0, slash)));
}

std::string Words(const Json& value) { return value.is_string() ? value.get<std::string>() : ""; }

void LintDnsLabel(const std::string& where, const Json& value) {
  if (!value.is_string() || !IsDnsLabel(Words(value))) {
    Refuse(where, value, "lower-case letters, digits and -, at most 63");
  }
}
void LintObjectName(const std::string& where, const Json& value) {
  if (!value.is_string() || !IsSubdomain(Words(value))) {
    Refuse(where, value, "an object's name: lower-case letters, digits, - and .");
  }
}

void LintLabels(const std::string& where, const Json& labels) {
  if (!labels.is_object()) Refuse(where, labels, "a mapping");
  for (const auto& [key, value] : labels.items()) {
    if (!IsQualifiedName(key)) Refuse(where, key, "a label's name, [prefix/]name");
    if (!value.is_string() || !IsLabelValue(Words(value))) {
      Refuse(where + '[' + key + ']', value, "a label's value: letters, digits, -, _ and ., at most 63");
    }
  }
}

void LintMetadata(const std::string& where, const Json& metadata) {
  if (metadata.contains("labels")) LintLabels(where + ".labels", metadata.at("labels"));
  size_t bytes = 0;
  const Json annotations = metadata.value("annotations", Json::object());
  for (const auto& [key, value] : annotations.items()) {
    if (!IsQualifiedName(key)) Refuse(where + ".annotations", key, "an annotation's name, [prefix/]name");
    if (!value.is_string()) Refuse(where + ".annotations[" + key + ']', value, "text");
    bytes += key.size() + Words(value).size();
  }
  if (bytes > kAnnotationsBytes) Refuse(where + ".annotations", fmt::format("{} bytes", bytes), "at most 256 KiB");
}

void LintImage(const std::string& where, const Json& image) {
  static const std::regex kReference(
      "([a-zA-Z0-9]([-.a-zA-Z0-9]*[a-zA-Z0-9])?(:[0-9]+)?/)?"       // registry
      "[a-z0-9]+([._-]+[a-z0-9]+)*(/[a-z0-9]+([._-]+[a-z0-9]+)*)*"  // repository
      "(:([A-Za-z0-9_][-.A-Za-z0-9_]{0,127}))?(@sha256:[0-9a-f]{64})?");
  std::smatch match;
  const std::string text = Words(image);
  if (!std::regex_match(text, match, kReference)) {
    Refuse(where, image, "an image: REGISTRY/NAME:TAG or REGISTRY/NAME@sha256:…", "letters of the name are lower case");
  }
  const std::string tag = match[8];
  if (match[9].length() == 0 && (tag.empty() || tag == "latest")) {
    Refuse(where, image, "one image, today and tomorrow", "name its digest, NAME@sha256:…, or at least a tag");
  }
}

// Returns the page size in bytes: 2097152 for "hugepages-2Mi".
std::optional<double> PageBytes(const std::string& resource) {
  constexpr std::string_view kPrefix = "hugepages-";
  if (!resource.starts_with(kPrefix)) return std::nullopt;
  return ParseQuantity(std::string_view(resource).substr(kPrefix.size()));
}

double LintAmount(const std::string& where, const Json& value) {
  const std::optional<double> amount = ParseQuantity(value.is_string() ? Words(value) : value.dump());
  if (!amount) Refuse(where, value, "an amount such as 500m, 4, 64Gi or 64G", "Kubernetes writes 64GB as 64G");
  return *amount;
}

void LintResources(const std::string& where, const Json& resources) {
  const Json limits = resources.value("limits", Json::object());
  const Json requests = resources.value("requests", Json::object());
  for (const auto& [list, amounts] : {std::pair{"limits", limits}, std::pair{"requests", requests}}) {
    for (const auto& [name, value] : amounts.items()) {
      const std::string place = fmt::format("{}.{}[{}]", where, list, name);
      if (!IsQualifiedName(name)) Refuse(place, name, "a resource's name");
      const double amount = LintAmount(place, value);
      const bool is_device = name.find('/') != std::string::npos;
      const bool is_page = name.starts_with("hugepages-");
      if (is_device && amount != std::floor(amount)) Refuse(place, value, "a whole number: devices are not shared");
      if (is_page) {
        const std::optional<double> page = PageBytes(name);
        if (!page || *page <= 0) Refuse(place, name, "a page size, such as hugepages-2Mi");
        if (std::fmod(amount, *page) != 0) Refuse(place, value, "a multiple of the page size");
      }
      if (is_device || is_page) {
        const Json& other = list == std::string_view("limits") ? requests : limits;
        if (other.contains(name) && LintAmount(place, other.at(name)) != amount) {
          Refuse(place, value, "the same as a request and as a limit", other.at(name).dump() + " is the other");
        }
        if (!limits.contains(name)) Refuse(place, value, "a limit, too");
      } else if (list == std::string_view("requests") && limits.contains(name) &&
                 amount > LintAmount(place, limits.at(name))) {
        Refuse(place, value, "at most the limit, " + limits.at(name).dump());
      }
    }
    bool has_pages = false;
    for (const auto& item : amounts.items()) has_pages = has_pages || item.key().starts_with("hugepages-");
    const auto has = [&](const char* name) { return limits.contains(name) || requests.contains(name); };
    if (has_pages && !has("cpu") && !has("memory")) {
      Refuse(where, amounts, "that also asks for cpu or memory: hugepages alone are refused", "set memory: or cpu:");
    }
  }
}

void LintCommand(const std::string& where, const Json& words) {
  const bool list =
      words.is_array() && std::all_of(words.begin(), words.end(), [](const Json& word) { return word.is_string(); });
  if (!list) Refuse(where, words, "a list of texts");
}

void LintEnvironment(const std::string& where, const Json& env) {
  std::set<std::string> names;
  for (const Json& variable : env) {
    const std::string name = Words(variable.value("name", Json()));
    if (!Matches(name, "[-._a-zA-Z][-._a-zA-Z0-9]*")) Refuse(where, variable, "a variable with a name");
    if (!names.insert(name).second) Refuse(where, name, "there once");
    if (const auto value = variable.find("value"); value != variable.end() && !value->is_string()) {
      Refuse(where + '[' + name + ']', *value, "text", "write it in quotes");
    }
  }
}

void LintMounts(const std::string& where, const Json& mounts, const std::set<std::string>& volumes) {
  std::set<std::string> paths;
  for (const Json& mount : mounts) {
    const std::string path = Words(mount.value("mountPath", Json()));
    if (!path.starts_with('/') || path.find(':') != std::string::npos) {
      Refuse(where, mount, "a mount with an absolute mountPath, without ':'");
    }
    if (!paths.insert(path).second) Refuse(where, path, "mounted once");
    const std::string sub_path = Words(mount.value("subPath", Json("")));
    if (sub_path.starts_with('/') || Matches(sub_path, "(.*/)?\\.\\.(/.*)?")) {
      Refuse(where, sub_path, "a path inside the volume");
    }
    if (!volumes.contains(Words(mount.value("name", Json())))) {
      Refuse(where, mount, "the name of one of `volumes:`", "volumes: " + Json(volumes).dump());
    }
  }
}

void LintContainer(const std::string& where, const Json& container, const std::set<std::string>& volumes) {
  LintDnsLabel(where + ".name", container.value("name", Json()));
  LintImage(where + ".image", container.value("image", Json()));
  for (const char* words : {"command", "args"}) {
    if (container.contains(words)) LintCommand(where + '.' + words, container.at(words));
  }
  static const std::set<std::string> kPolicies = {"Always", "IfNotPresent", "Never"};
  if (const auto policy = container.find("imagePullPolicy");
      policy != container.end() && !kPolicies.contains(Words(*policy))) {
    Refuse(where + ".imagePullPolicy", *policy, "Always, IfNotPresent or Never");
  }
  LintEnvironment(where + ".env", container.value("env", Json::array()));
  LintResources(where + ".resources", container.value("resources", Json::object()));
  LintMounts(where + ".volumeMounts", container.value("volumeMounts", Json::array()), volumes);
}

std::set<std::string> LintVolumes(const std::string& where, const Json& volumes) {
  std::set<std::string> names;
  for (const Json& volume : volumes) {
    const Json name = volume.value("name", Json());
    LintDnsLabel(where + ".name", name);
    if (!names.insert(Words(name)).second) Refuse(where, name, "there once");
    if (volume.size() != 2) Refuse(where, volume, "a name and what the volume is");
    if (const auto claim = volume.find("persistentVolumeClaim"); claim != volume.end()) {
      LintObjectName(where + ".claimName", claim->value("claimName", Json()));
    }
    if (const auto secret = volume.find("secret"); secret != volume.end()) {
      LintObjectName(where + ".secretName", secret->value("secretName", Json()));
    }
  }
  return names;
}

void LintToleration(const std::string& where, const Json& toleration) {
  if (!toleration.is_object()) Refuse(where, toleration, "a mapping: key, operator, value, effect");
  static const std::set<std::string> kEffects = {"", "NoSchedule", "PreferNoSchedule", "NoExecute"};
  const std::string operation = Words(toleration.value("operator", Json("Equal")));
  const std::string effect = Words(toleration.value("effect", Json("")));
  const bool has_key = !Words(toleration.value("key", Json(""))).empty();
  if (operation != "Equal" && operation != "Exists") Refuse(where, toleration, "of operator Exists or Equal");
  if (operation == "Exists" && toleration.contains("value"))
    Refuse(where, toleration, "without a value: it says Exists");
  if (operation == "Equal" && !has_key) Refuse(where, toleration, "of a key");
  if (!kEffects.contains(effect)) Refuse(where, toleration, "of effect NoSchedule, PreferNoSchedule or NoExecute");
  if (toleration.contains("tolerationSeconds") && effect != "NoExecute") {
    Refuse(where, toleration, "of effect NoExecute: only that has tolerationSeconds");
  }
}

void LintTopology(const Json& affinity) {
  for (const char* kind : {"podAffinity", "podAntiAffinity"}) {
    const Json terms =
        affinity.value(kind, Json::object()).value("requiredDuringSchedulingIgnoredDuringExecution", Json::array());
    for (const Json& term : terms) {
      const Json key = term.value("topologyKey", Json());
      if (!IsQualifiedName(Words(key))) {
        Refuse(fmt::format("spec.affinity.{}.topologyKey", kind), key, "a label's name, [prefix/]name");
      }
    }
  }
}

// In-memory volumes count as the container's memory.
void LintMemory(const Json& spec) {
  double shared = 0;
  for (const Json& volume : spec.value("volumes", Json::array())) {
    const Json empty_dir = volume.value("emptyDir", Json::object());
    if (Words(empty_dir.value("medium", Json())) != "Memory" || !empty_dir.contains("sizeLimit")) continue;
    shared += LintAmount("spec.volumes.emptyDir.sizeLimit", empty_dir.at("sizeLimit"));
  }
  const Json limit = spec.at("containers").at(0).value("/resources/limits/memory"_json_pointer, Json());
  if (limit.is_null() || shared == 0) return;
  if (LintAmount("memory", limit) <= shared) {
    Refuse("memory", limit, "more than shared_memory, which is part of it", "raise memory: or lower shared_memory:");
  }
}

// On the node's own network, pods of a gang find each other by the cluster's names only if their dnsPolicy says so.
// Their port is also the node's, and another gang's pod there may have it.
void LintHostNetwork(const Json& spec) {
  if (spec.value("hostNetwork", Json()) != true) return;
  const Json dns = spec.value("dnsPolicy", Json());
  if (dns != "ClusterFirstWithHostNet" && dns != "None") {
    Refuse("spec.dnsPolicy", dns, "ClusterFirstWithHostNet, as the patch sets hostNetwork and ranks meet by a name",
           "add dnsPolicy: ClusterFirstWithHostNet beside it");
  }
  for (const Json& container : spec.value("containers", Json::array())) {
    if (Words(container.value("name", Json())) != kContainer) continue;
    for (const Json& variable : container.value("env", Json::array())) {
      const Json value = variable.value("value", Json());
      if (Words(variable.value("name", Json())) != "MASTER_PORT" || value != std::to_string(kMasterPort)) continue;
      Refuse("the variable MASTER_PORT", value, "another port, free on every node, as the patch sets hostNetwork",
             "add to the patch: containers: [{name: ridgeline, env: [{name: MASTER_PORT, value: \"29617\"}]}]");
    }
  }
}

void LintPod(const Json& spec) {
  const std::string where = "spec";
  if (Words(spec.value("restartPolicy", Json())) != "Never") {
    Refuse("spec.restartPolicy", spec.value("restartPolicy", Json()), "Never: a silent retry biases a benchmark");
  }
  const std::set<std::string> volumes = LintVolumes("spec.volumes", spec.value("volumes", Json::array()));
  bool ours = false;
  for (const char* list : {"initContainers", "containers"}) {
    for (const Json& container : spec.value(list, Json::array())) {
      const std::string name = Words(container.value("name", Json()));
      ours = ours || name == kContainer;
      LintContainer(fmt::format("spec.{}[{}]", list, name), container, volumes);
    }
  }
  if (!ours) Refuse("spec.containers", spec.value("containers", Json()), "among them the container ridgeline");
  for (const char* seconds : {"activeDeadlineSeconds", "terminationGracePeriodSeconds"}) {
    if (const auto value = spec.find(seconds); value != spec.end() && (!value->is_number_integer() || *value < 1)) {
      Refuse(where + '.' + seconds, *value, "a whole number of seconds from 1");
    }
  }
  for (const char* name : {"serviceAccountName", "priorityClassName"}) {
    if (const auto value = spec.find(name); value != spec.end()) LintObjectName(where + '.' + name, *value);
  }
  for (const Json& secret : spec.value("imagePullSecrets", Json::array())) {
    LintObjectName("spec.imagePullSecrets", secret.value("name", Json()));
  }
  LintLabels("spec.nodeSelector", spec.value("nodeSelector", Json::object()));
  for (const Json& toleration : spec.value("tolerations", Json::array())) {
    LintToleration("spec.tolerations", toleration);
  }
  LintTopology(spec.value("affinity", Json::object()));
  LintMemory(spec);
}

}  // namespace

void Lint(const Json& job, const Kind& kind) {
  try {
    const Json& metadata = job.at("metadata");
    const Json& spec = job.at("spec");
    LintDnsLabel("metadata.name", metadata.at("name"));
    if (metadata.contains("namespace")) LintDnsLabel("namespace", metadata.at("namespace"));
    LintMetadata("metadata", metadata);
    if (spec.contains("completions")) {
      const std::string last =
          fmt::format("{}{}-{}", Words(metadata.at("name")), kind.infix, spec.at("completions").get<int64_t>() - 1);
      LintDnsLabel("the name of its last pod", last);
      LintHostNetwork(spec.at("template").at("spec"));
    }
    LintMetadata("the pod template's metadata", spec.at("template").value("metadata", Json::object()));
    LintPod(spec.at("template").at("spec"));
  } catch (const Json::exception& e) {  // a patch has changed the structure
    throw Failure(Failure::Kind::kInvalidInput,
                  fmt::format("launch: kubernetes: patch: makes no pod template: {}", JsonFault(e)));
  }
}

}  // namespace ridgeline::kubernetes
