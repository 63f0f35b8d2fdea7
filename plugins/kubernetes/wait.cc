#include "kubernetes/wait.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <map>
#include <string_view>

#include <fmt/format.h>

#include "kubernetes/quantity.h"

namespace ridgeline::kubernetes {
namespace {

constexpr std::array<std::string_view, 2> kNoSuchImage = {"InvalidImageName", "ErrImageNeverPull"};
// Reasons why no pod of ours may go to a node, whatever room it has, in the words of past releases.
constexpr std::array<std::string_view, 5> kNotThisNode = {"didn't match Pod's node affinity",
                                                          "didn't match node selector", "had taint {",
                                                          "had untolerated taint", "were unschedulable"};
constexpr const char* kStorageHint = "volumes: and output: name what the namespace has: `kubectl get pvc`";

constexpr const char* kNotMounted = "a volume is not mounted";
constexpr const char* kNoSandbox = "its sandbox cannot be made";
constexpr const char* kNoContainer = "its container cannot be made";

bool Says(const std::string& text, const char* words) { return text.find(words) != std::string::npos; }

// Removes numbers and quoted text.
std::string WithoutNames(std::string_view text) {
  std::string kept;
  bool quoted = false;
  for (const char c : text) {
    if (c == '"') quoted = !quoted;
    if (!quoted && c != '"' && (c < '0' || c > '9')) kept += c;
  }
  return kept;
}

std::optional<Wait> OfNoNode(const PodView& pod) {
  if (pod.unschedulable.empty()) return std::nullopt;
  // "persistentvolumeclaim \"x\" not found", "pod has unbound immediate PersistentVolumeClaims", "… had volume node
  // affinity conflict": only a volume keeps the pod from a node.
  if (Says(pod.unschedulable, "ersistentvolumeclaim") || Says(pod.unschedulable, "ersistentVolumeClaim") ||
      Says(pod.unschedulable, "volume node affinity")) {
    return Wait{"storage", pod.unschedulable, kStorageHint};
  }
  if (IsWithoutNode(pod.unschedulable)) {
    return Wait{"start", pod.unschedulable, "`kubectl get nodes` says which are there, and how they are", false, true};
  }
  return Wait{"start", pod.unschedulable, "it starts when a node has room; if no node is that large, ask for less"};
}

// The container is being made. Only events say how far that is.
std::optional<Wait> OfMaking(const PodView& pod, const PodEvent& event) {
  const std::string said = event.reason + ": " + event.message;
  if (event.reason == "FailedMount" || event.reason == "FailedAttachVolume" || event.reason == "FailedMapVolume") {
    return Wait{"storage", std::string(kNotMounted) + ": " + said, kStorageHint};
  }
  if (event.reason == "FailedCreatePodSandBox") {
    return Wait{"start", std::string(kNoSandbox) + ": " + said, "`kubectl describe pod " + pod.name + "` says more"};
  }
  if (pod.init_container.empty()) return std::nullopt;
  return Wait{"start", fmt::format("the container {}, which comes before ours, has not ended", pod.init_container),
              fmt::format("`kubectl logs {} --container={}` says what it does", pod.name, pod.init_container)};
}

}  // namespace

std::string SubjectOf(const Wait& wait, const std::string& image) {
  if (wait.reason == "image") return "image " + image;
  for (const char* sentence : {kNotMounted, kNoSandbox, kNoContainer}) {
    if (wait.message.starts_with(sentence)) return sentence;
  }
  return WithoutNames(wait.message);
}

std::optional<Wait> WaitOf(const PodView& pod, const PodEvent& event) {
  if (pod.waiting.empty() || pod.waiting == "ContainerCreating" || pod.waiting == "PodInitializing") {
    return pod.node.empty() ? OfNoNode(pod) : OfMaking(pod, event);
  }
  std::string said = pod.waiting + (pod.waiting_message.empty() ? "" : ": " + pod.waiting_message);
  if (!pod.init_container.empty()) said = fmt::format("{} (of the container {})", said, pod.init_container);
  if (pod.waiting.find("Image") != std::string::npos) {
    const bool hopeless = std::find(kNoSuchImage.begin(), kNoSuchImage.end(), pod.waiting) != kNoSuchImage.end();
    return Wait{"image", "the image cannot be pulled: " + said,
                "check image:, and image_pull_secrets: if the registry needs a login", hopeless};
  }
  // The kubelet says "failed to prepare subPath for volumeMount …".
  const char* const reason = Says(pod.waiting_message, "volumeMount") ? "storage" : "start";
  return Wait{reason, std::string(kNoContainer) + ": " + said, "`kubectl describe pod " + pod.name + "` says more"};
}

Wait WaitOfRefusal(const std::string& event_message) {
  const auto says = [&](const char* words) { return Says(event_message, words); };
  const std::string message = "no pod can be made: " + event_message;
  if (says("exceeded quota")) {
    if (!IsBeyondQuota(event_message)) {
      return {"limit", message, "it starts when others free what the quota counts; or have the quota raised"};
    }
    return {"limit", message,
            "it asks for more than the namespace's quota has in all: ask for less, or have the quota raised", true};
  }
  if (says("must specify")) return {"limit", message, "the namespace's quota wants cpu: and memory: set", true};
  if (says("per Container is") || says("per Pod is")) {
    return {"limit", message, "the namespace's LimitRange says what a pod may ask for: `kubectl get limitrange`", true};
  }
  if (says("service account") || says("serviceaccount")) {
    return {"rights", message, "service_account: names one that the namespace has: `kubectl get serviceaccount`", true};
  }
  if (says("PriorityClass")) {
    return {"rights", message, "priority_class: names one that the cluster has: `kubectl get priorityclass`", true};
  }
  return {"rights", message, "the cluster's rules forbid such a pod; patch: changes what it asks for",
          says("is forbidden") || says("denied the request")};
}

bool IsWithoutNode(const std::string& message) {
  const auto number_at = [&](size_t at) {
    int32_t number = 0;
    std::from_chars(message.data() + std::min(at, message.size()), message.data() + message.size(), number);
    return number;
  };
  constexpr std::string_view kNone = "0/";
  constexpr std::string_view kNodes = " node(s) ";
  if (!message.starts_with(kNone)) return false;
  const int64_t nodes = number_at(kNone.size());
  int64_t not_these = 0;
  const std::string_view text = message;
  for (size_t at = 0; (at = text.find(kNodes, at)) != std::string_view::npos; at += kNodes.size()) {
    const std::string_view why = text.substr(at + kNodes.size());
    const bool counts = std::any_of(kNotThisNode.begin(), kNotThisNode.end(),
                                    [&](std::string_view words) { return why.starts_with(words); });
    if (counts) not_these += number_at(text.find_last_not_of("0123456789", at - 1) + 1);
  }
  return nodes > 0 && not_these >= nodes;
}

bool IsBeyondQuota(const std::string& message) {
  // The form is "NAME: a=1,b=2, NAME: …".
  const auto amounts = [&](const std::string& name) {
    std::map<std::string, double> found;
    size_t at = message.find(name);
    if (at == std::string::npos) return found;
    at += name.size();
    while (at < message.size()) {
      const size_t equals = message.find('=', at);
      const size_t end = std::min(message.find(',', at), message.size());
      if (equals == std::string::npos || equals > end) break;
      if (const auto amount = ParseQuantity(std::string_view(message).substr(equals + 1, end - equals - 1))) {
        found[message.substr(at, equals - at)] = *amount;
      }
      if (end + 1 >= message.size() || message[end + 1] == ' ') break;
      at = end + 1;
    }
    return found;
  };
  const std::map<std::string, double> limited = amounts("limited: ");
  const std::map<std::string, double> requested = amounts("requested: ");
  return std::any_of(requested.begin(), requested.end(), [&](const auto& entry) {
    const auto limit = limited.find(entry.first);
    return limit != limited.end() && entry.second > limit->second;
  });
}

}  // namespace ridgeline::kubernetes
