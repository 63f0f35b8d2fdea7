// What `nightly install --kubernetes` prints, as a real API server takes it.
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
  const auto sweep = cli.Write({.points = 2});
  const auto install = cli.Run({"nightly", "install", sweep, "--kubernetes", "--at", "3:07"});
  ASSERT_EQ(install.status.exit_code, 0) << install.err;
  // As kustomization.yaml has it done to the files that ship.
  std::string text = install.out;
  const std::string shipped = "namespace: ridgeline";
  for (size_t at = 0; (at = text.find(shipped, at)) != std::string::npos;) {
    text.replace(at, shipped.size(), "namespace: " + cli.name_space);
  }
  WriteFileAtomic(cli.dir / "nights.yaml", text);
  const std::string file = "--filename=" + (cli.dir / "nights.yaml").string();
  const std::string tried = cli.Kubectl({"create", "--dry-run=server", "--validate=strict", file});
  for (const char* object :
       {"configmap/ridgeline-nightly", "persistentvolumeclaim/ridgeline-nightly", "cronjob.batch/ridgeline-nightly"}) {
    EXPECT_THAT(tried, HasSubstr(std::string(object) + " created (server dry run)"));
  }
  cli.Kubectl({"create", file});
  EXPECT_EQ(cli.Kubectl({"get", "cronjob", "ridgeline-nightly", "--output=jsonpath={.spec.schedule}"}), "7 3 * * *");
  EXPECT_EQ(cli.Kubectl({"get", "configmap", "ridgeline-nightly", "--output=jsonpath={.data.sweep\\.yaml}"}),
            ReadFile(sweep));
}

}  // namespace
}  // namespace ridgeline
