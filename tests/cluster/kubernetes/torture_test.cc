// Kills of whatever takes part, at random moments, on a real Kubernetes.
#include "tests/torture/torture.h"
#include "tests/cluster/kubernetes/kubernetes.h"

namespace ridgeline::testing {
namespace {

class KubernetesTorture : public OnKubernetes {};

// Processes below one whose command line has `text`: what a pod runs has no other mark.
std::vector<pid_t> ProcessesBelow(const std::string& text) {
  std::vector<pid_t> found = ProcessesWith(text);
  for (size_t i = 0; i < found.size(); ++i) {
    for (const pid_t pid : ChildrenOf(found[i])) {
      if (std::find(found.begin(), found.end(), pid) == found.end()) found.push_back(pid);
    }
  }
  return found;
}

TEST_F(KubernetesTorture, OnKubernetes) {
  const Kubernetes cluster = Kubernetes::Own();
  // Two, since a node on which two jobs were killed is set aside by the run that saw it.
  for (const char* node : {"n1", "n2"}) cluster.StartNode(node);
  Torture("kubernetes", [&](uint64_t seed) {
    using enum Blow;
    KubernetesCli cli(cluster);
    constexpr int kPoints = 6;
    // Where both nodes are set aside, what waits for them need not wait for long.
    const auto sweep =
        cli.Write({.points = kPoints, .trainer = "own=300", .launch = "bundle: 2\n  launcher_timeout: 20s"});
    return Round({.cli = cli,
                  .sweep = sweep,
                  .points = kPoints,
                  .blows = {kKillDriver, kKillHelper, kKillExec, kKillTrainer, kKillEverything},
                  .processes = [&] { return ProcessesBelow(cluster.dir().string()); },
                  .most_wait_ms = 2000},
                 seed)
        .Play();
  });
}

}  // namespace
}  // namespace ridgeline::testing
