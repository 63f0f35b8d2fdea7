// The conformance suite for the Kubernetes launcher on a real API server.
#include "tests/plugins/conformance.h"

#include "tests/cluster/kubernetes/kubernetes.h"

namespace ridgeline::testing {
namespace {

// `kind`: what jobs become, as sweeps call it. Where that is no Job, a double stands for its controller.
Candidate OnTheSharedCluster(const std::string& kind) {
  Candidate candidate;
  candidate.label = kind;
  candidate.launcher = "kubernetes";
  candidate.plugin_dir = RIDGELINE_PLUGIN_DIR;
  // The suite's jobs are shell scripts that write into a folder of this machine.
  candidate.config = {{"kubernetes",
                       {{"kind", kind},
                        {"image", "test/ridgeline:1"},
                        {"program", "/bin/sh"},
                        {"volumes", {{{"name", "tmp"}, {"mount", "/tmp"}, {"hostPath", {{"path", "/tmp"}}}}}},
                        {"patch",
                         {{"spec",
                           {{"securityContext", {{"runAsUser", 0}, {"runAsNonRoot", false}}},
                            {"terminationGracePeriodSeconds", 1}}}}}}}};
  candidate.bad_exec = {};
  candidate.skip = WhyNoKubernetes();
  candidate.world = [kind]() -> std::shared_ptr<void> {
    auto cluster = std::make_shared<Kubernetes>(Kubernetes::Shared());
    auto cli = std::make_shared<KubernetesCli>(*cluster, true, kind);
    return std::make_shared<std::pair<std::shared_ptr<Kubernetes>, std::shared_ptr<KubernetesCli>>>(cluster, cli);
  };
  return candidate;
}

INSTANTIATE_TEST_SUITE_P(Kubernetes, Conformance,
                         ::testing::Values(OnTheSharedCluster("job"), OnTheSharedCluster("jobset"),
                                           OnTheSharedCluster("pytorchjob"), OnTheSharedCluster("trainjob")),
                         Label);

}  // namespace
}  // namespace ridgeline::testing
