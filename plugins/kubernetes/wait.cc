#include "kubernetes/wait.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "kubernetes/quantity.h"

namespace ridgeline::kubernetes {
namespace {

using std::chrono::seconds;

constexpr seconds kRefusedPatience{10};  // a new namespace lacks its service account for a moment

}  // namespace

std::optional<Wait> WaitOf(const PodView& pod, seconds start_timeout) {
  static constexpr std::array<std::string_view, 2> kHopeless = {"InvalidImageName", "ErrImageNeverPull"};
  if (pod.waiting.empty() || pod.waiting == "ContainerCreating" || pod.waiting == "PodInitializing") {
    if (pod.unschedulable.empty()) return std::nullopt;
    return Wait{pod.unschedulable, "it starts when a node has room; where no node is that large, ask for less", {}};
  }
  const bool hopeless = std::find(kHopeless.begin(), kHopeless.end(), pod.waiting) != kHopeless.end();
  const seconds patience = hopeless ? seconds(0) : start_timeout;
  const std::string said = pod.waiting + (pod.waiting_message.empty() ? "" : ": " + pod.waiting_message);
  if (pod.waiting.find("Image") != std::string::npos) {
    return Wait{"the image cannot be pulled: " + said,
                "check image:, and image_pull_secrets: where the registry asks who you are", patience};
  }
  return Wait{"its container cannot be made: " + said, "`kubectl describe pod " + pod.name + "` says more", patience};
}

Wait WaitOfRefusal(const std::string& event_message) {
  Wait wait;
  wait.message = "no pod can be made: " + event_message;
  const auto says = [&](const char* words) { return event_message.find(words) != std::string::npos; };
  if (says("exceeded quota") && IsBeyondQuota(event_message)) {
    wait.hint = "it asks for more than the namespace's quota has in all: ask for less, or have the quota raised";
    wait.patience = kRefusedPatience;
  } else if (says("exceeded quota")) {
    wait.hint = "it starts when others free what the quota counts; or have the quota raised";
  } else if (says("must specify")) {
    wait.hint = "the namespace's quota wants cpu: and memory: set";
    wait.patience = kRefusedPatience;
  } else if (says("service account") || says("serviceaccount")) {
    wait.hint = "service_account: names one that the namespace has: `kubectl get serviceaccount`";
    wait.patience = kRefusedPatience;
  } else if (says("PriorityClass")) {
    wait.hint = "priority_class: names one that the cluster has: `kubectl get priorityclass`";
    wait.patience = kRefusedPatience;
  } else {
    wait.hint = "the cluster's rules forbid such a pod; patch: changes what it asks for";
    if (says("is forbidden")) wait.patience = kRefusedPatience;
  }
  return wait;
}

bool IsBeyondQuota(const std::string& message) {
  // "NAME: a=1,b=2, NAME: …"
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
