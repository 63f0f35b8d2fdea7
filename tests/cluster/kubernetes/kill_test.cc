// Drivers and an API server that die at any moment. In the end every point has one result that stands.
#include <random>

#include "tests/cluster/kubernetes/kubernetes.h"

namespace ridgeline {
namespace {

using testing::Kubernetes;
using testing::KubernetesCli;

class KubernetesKills : public testing::OnKubernetes {};

TEST_F(KubernetesKills, ADriverKilledAtAnyMomentLosesAndDoublesNothing) {
  const Kubernetes cluster = Kubernetes::Shared();
  std::mt19937 random = testing::SeededRandom();
  int kills = 0;
  while (kills < 20) {
    KubernetesCli cli(cluster);
    const auto sweep = cli.Write({.points = 8, .trainer = "slow=300"});
    cli.KillDrivers(sweep, random, 400, 2500, kills);
    cli.ExpectOk(cli.Run({"run", sweep}));
    cli.ExpectEachRanOnce(8);
    if (HasFailure()) break;
  }
}

TEST_F(KubernetesKills, AnApiServerThatIsKilledUnderASweepLosesNothing) {
  const Kubernetes cluster = Kubernetes::Own();
  cluster.StartNode("n1");
  KubernetesCli cli(cluster);
  Child run = cli.Start({"run", cli.Write({.points = 12, .trainer = "slow=2000", .launch = "max_parallel: 4"})});
  ASSERT_TRUE(cli.WaitForStarts(2));
  cluster.ApiServer("kill");
  ASSERT_TRUE(cli.WaitToRead(run, "asking again"));
  cluster.ApiServer("start");
  ASSERT_TRUE(cli.WaitForStarts(7));
  cluster.ApiServer("pause");
  run.WaitFor(3'000'000'000);
  cluster.ApiServer("continue");
  cli.ExpectOk(cli.Finish(run));
  cli.ExpectEachRanOnce(12);
}

TEST_F(KubernetesKills, AWatchWhoseVersionIsForgottenListsAnew) {
  const Kubernetes cluster = Kubernetes::Own();
  cluster.StartNode("n1");
  KubernetesCli cli(cluster);
  Child run = cli.Start({"run", cli.Write({.points = 6, .trainer = "slow=3000", .launch = "max_parallel: 2"})});
  ASSERT_TRUE(cli.WaitForStarts(1));
  for (int i = 0; i < 5; ++i) cli.Kubectl({"create", "configmap", fmt::format("filler-{}", i)});  // makes new versions
  cluster.ApiServer("compact");
  ASSERT_TRUE(cli.WaitForStarts(4));
  cli.ExpectOk(cli.Finish(run));
  cli.Kubectl({"delete", "configmaps", "--all"});
  cli.ExpectEachRanOnce(6);
}

TEST_F(KubernetesKills, ASlowEtcdOnlyTakesLonger) {
  const Kubernetes cluster = Kubernetes::Own();
  cluster.StartNode("n1");
  KubernetesCli cli(cluster);
  cluster.Etcd("slow");
  cli.ExpectOk(cli.Run({"run", cli.Write({.points = 6})}));
  cluster.Etcd("normal");
  cli.ExpectEachRanOnce(6);
}

TEST_F(KubernetesKills, AKubectlThatIsKilledIsStartedAgain) {
  const Kubernetes cluster = Kubernetes::Shared();
  KubernetesCli cli(cluster);
  Child run = cli.Start({"run", cli.Write({.points = 4, .trainer = "slow=1500", .launch = "max_parallel: 2"})});
  ASSERT_TRUE(cli.WaitForStarts(1));
  const auto proxies = testing::ProcessesWith(fmt::format("ridgeline-kubectl-{}-", run.pid()));
  ASSERT_EQ(proxies.size(), 1U);
  ::kill(proxies.front(), SIGKILL);
  cli.ExpectOk(cli.Finish(run));
  cli.ExpectEachRanOnce(4);
  EXPECT_TRUE(testing::ProcessesWith(fmt::format("ridgeline-kubectl-{}-", run.pid())).empty());
}

}  // namespace
}  // namespace ridgeline
