// The output of `nightly install --kubernetes`, accepted by a real API server.
#include "tests/cluster/kubernetes/kubernetes.h"

namespace ridgeline {
namespace {

using ::testing::HasSubstr;
using testing::Kubernetes;
using testing::KubernetesCli;

class KubernetesNights : public testing::OnKubernetes {
 protected:
  const Kubernetes cluster_ = Kubernetes::Shared();
};

TEST_F(KubernetesNights, TheServerTakesTheCronJobThatInstallPrints) {
  KubernetesCli cli(cluster_);
  const auto sweep = cli.Write({.points = 2, .launch = "time_limit: 5m"});
  const auto install = cli.Run({"nightly", "install", sweep, "--kubernetes", "--at", "3:07"});
  ASSERT_EQ(install.status.exit_code, 0) << install.err;
  std::string text = install.out;
  const auto replace = [&](const std::string& from, const std::string& to) {
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
      text.replace(at, from.size(), to);
    }
  };
  replace("namespace: ridgeline", "namespace: " + cli.name_space);  // as kustomization.yaml does it
  // Debian's Kubernetes, 1.20, has CronJobs under their older name, and drops fields that exist since 1.27.
  // k8s_manifests checks those fields.
  replace("\napiVersion: batch/v1\n", "\napiVersion: batch/v1beta1\n");
  WriteFileAtomic(cli.dir / "nights.yaml", text);
  const std::string file = "--filename=" + (cli.dir / "nights.yaml").string();
  const std::string tried = cli.Kubectl({"create", "--dry-run=server", "--validate=false", file});
  for (const char* object :
       {"configmap/ridgeline-nightly", "persistentvolumeclaim/ridgeline-nightly", "cronjob.batch/ridgeline-nightly"}) {
    EXPECT_THAT(tried, HasSubstr(std::string(object) + " created (server dry run)"));
  }
  cli.Kubectl({"create", "--validate=false", file});
  EXPECT_EQ(cli.Kubectl({"get", "cronjob", "ridgeline-nightly", "--output=jsonpath={.spec.schedule}"}), "7 3 * * *");
  EXPECT_EQ(cli.Kubectl({"get", "configmap", "ridgeline-nightly", "--output=jsonpath={.data.sweep\\.yaml}"}),
            ReadFile(sweep));
}

}  // namespace
}  // namespace ridgeline
