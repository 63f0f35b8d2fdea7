// Kills of all participants at random moments, on a real Kubernetes.
#include "tests/torture/torture.h"
#include "tests/cluster/kubernetes/kubernetes.h"

namespace ridgeline::testing {
namespace {

class KubernetesTorture : public OnKubernetes {};

// Processes below one whose command line has `text`. Processes of a pod have no other mark.
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
  // Two nodes, because a run sets a node aside when two jobs were killed on it.
  for (const char* node : {"n1", "n2"}) cluster.StartNode(node);
  Torture("kubernetes", [&](uint64_t seed) {
    using enum Blow;
    KubernetesCli cli(cluster);
    constexpr int kPoints = 6;
    // If both nodes are set aside, jobs that wait for them need not wait long.
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
