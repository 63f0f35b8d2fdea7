// Other tests use a double of a kubelet. These use a real one: containers of containerd and runc, control groups,
// signals, images, logs. They are few, because each takes seconds. `make test-kubelet` runs them.
#include <signal.h>

#include "tests/cluster/kubernetes/kubernetes.h"

namespace ridgeline {
namespace {

using ::testing::AllOf;
using testing::Eventually;
using ::testing::HasSubstr;
using testing::Kubernetes;
using testing::KubernetesCli;

constexpr const char* kNode = "127.0.0.2";

class Kubelet : public ::testing::Test {
 protected:
  static std::filesystem::path Folder() { return std::filesystem::path(RIDGELINE_BINARY_DIR) / "k8s-kubelet"; }
  void SetUp() override {
    if (!std::filesystem::exists(Folder() / "kubeconfig")) {
      GTEST_SKIP() << "there is no kubelet; the tests kubelet_build and kubelet_up say why";
    }
  }
  // The program that a pod runs instead of `ridgeline`, for `program: /test/program`.
  static void WriteProgram(const KubernetesCli& cli, const std::string& script) {
    WriteFileAtomic(cli.dir / "program", "#!/bin/sh\n" + script);
    std::filesystem::permissions(cli.dir / "program", std::filesystem::perms(0755));
  }
  const Kubernetes cluster_ = Kubernetes::At(Folder());
};

// A shell that holds this much in its own memory.
constexpr const char* kGreed = "all=$(head -c 200000000 /dev/zero | tr '\\0' x)\n";

TEST_F(Kubelet, ASweepOfPointsAndGangsRunsToItsEnd) {
  KubernetesCli cli(cluster_);
  const auto run = cli.Run({"run", cli.WriteReal("batch_size: [2, 4, 8], ranks: [1, 2]", "cpu: 500m")});
  cli.ExpectOk(run);
  EXPECT_THAT(run.out, HasSubstr("6 ok"));
  cli.ExpectOneFinalResultEach(6, 6);
  EXPECT_EQ(cli.Count("SELECT count(*) FROM results WHERE json_array_length(loss) = 3"), 6)
      << "whole results, from logs";
  EXPECT_EQ(cli.Count("SELECT count(*) FROM results WHERE communicator_name = 'gloo'"), 3) << "two ranks each";
  EXPECT_EQ(cli.Cell("SELECT DISTINCT evidence ->> '$.node' FROM jobs"), kNode);
}

TEST_F(Kubelet, APodMayDoNothingButItsWork) {
  KubernetesCli cli(cluster_);
  const auto sweep = cli.Write(
      {.script = "{ id -u; grep -E 'NoNewPrivs|CapEff|Seccomp:' /proc/self/status; touch /x /ridgeline/job/x; "
                 "ls /var/run/secrets/kubernetes.io; touch /tmp/x && echo tmp works; } >/test/seen 2>&1;"});
  cli.ExpectOk(cli.Run({"run", sweep}));
  EXPECT_THAT(
      ReadFile(cli.dir / "seen"),
      AllOf(HasSubstr("65532\n"), HasSubstr("CapEff:\t0000000000000000"), HasSubstr("NoNewPrivs:\t1"),
            HasSubstr("Seccomp:\t2"), HasSubstr("'/x'"), HasSubstr("'/ridgeline/job/x'"),
            HasSubstr("Read-only file system"), HasSubstr("cannot access '/var/run/secrets"), HasSubstr("tmp works")));
}

TEST_F(Kubelet, ResultsOfADriverThatIsKilledArriveOnce) {
  KubernetesCli cli(cluster_);
  const auto sweep = cli.Write({.points = 6, .trainer = "slow=1500", .kubernetes = "cpu: 300m"});
  for (int64_t starts : {1, 3}) {
    Child run = cli.Start({"run", sweep});
    EXPECT_TRUE(cli.WaitForStarts(starts));
    run.Signal(SIGKILL);
    run.Wait();
  }
  cli.ExpectOk(cli.Run({"run", sweep}));
  cli.ExpectEachRanOnce(6);
}

// The kernel kills the trainer, and `ridgeline exec` reports it.
TEST_F(Kubelet, ATrainerThatTheKernelEndsForItsMemoryIsAResult) {
  KubernetesCli cli(cluster_);
  cli.ExpectUnanswered(cli.Run({"run", cli.Write({.trainer = "eat", .kubernetes = "memory: 96Mi"})}));
  EXPECT_EQ(cli.Statuses(), "oom_host");
  cli.ExpectOneFinalResultEach(1, 0);
}

// The kernel kills the container's first process, and `ridgeline exec` with it. The kubelet reports it. The trainer,
// which the kernel would choose first, asks to be spared.
TEST_F(Kubelet, AContainerThatTheKernelEndsForItsMemoryIsAResult) {
  KubernetesCli cli(cluster_);
  WriteProgram(cli, std::string("/opt/ridgeline/bin/ridgeline \"$@\" &\n"
                                "until [ -e /test/spared ]; do sleep 0.1; done\n") +
                        kGreed);
  cli.ExpectUnanswered(
      cli.Run({"run", cli.Write({.trainer = "sleep",
                                 .kubernetes = "memory: 96Mi, program: /test/program",
                                 .script = "sleep 0.5; echo 0 >/proc/self/oom_score_adj; touch /test/spared;"})}));
  EXPECT_EQ(cli.Statuses(), "oom_host");
  EXPECT_EQ(cli.Evidence("container_reason", "oom_host"), "OOMKilled");
  cli.ExpectOneFinalResultEach(1, 0);
}

TEST_F(Kubelet, AContainerOutOfMemoryBeforeItsPointBeganIsNoResult) {
  KubernetesCli cli(cluster_);
  WriteProgram(cli, kGreed);
  cli.ExpectUnmeasured(cli.Run(
      {"run", cli.Write({.kubernetes = "memory: 96Mi, program: /test/program", .launch = "retry: {start: 0}"})}));
  EXPECT_EQ(cli.Ends(), "start");
  EXPECT_THAT(cli.OfEnd("message", "start"), HasSubstr("held more memory than its limit"));
  cli.ExpectNothingLeft();
}

TEST_F(Kubelet, ADrainedPodIsRunAgain) {
  KubernetesCli cli(cluster_);
  Child run = cli.Start({"run", cli.Write({.trainer = "slow=4000"})});
  ASSERT_TRUE(cli.WaitForStarts(1));
  cli.Kubectl({"drain", kNode, "--force", "--delete-emptydir-data", "--timeout=60s"});
  cli.Kubectl({"uncordon", kNode});
  cli.ExpectOk(cli.Finish(run));
  EXPECT_EQ(cli.Ends(), "ok preempted");
  EXPECT_EQ(cli.EvidenceOfEnd("node", "preempted"), kNode);
  cli.ExpectOneFinalResultEach(1, 1);
}

TEST_F(Kubelet, ATrainerThatIgnoresToBeToldEndsByItsGrace) {
  KubernetesCli cli(cluster_);
  Child run = cli.Start({"run", cli.Write({.trainer = "ignore-term",
                                           .kubernetes = "patch: {spec: {terminationGracePeriodSeconds: 4}}",
                                           .launch = "retry: {preempted: 0}"})});
  ASSERT_TRUE(cli.WaitForStarts(1));
  cli.Kubectl({"delete", "pods", "--all", "--wait=false"});
  cli.ExpectUnmeasured(cli.Finish(run));
  EXPECT_EQ(cli.Ends(), "preempted");
  cli.ExpectNothingLeft();
}

TEST_F(Kubelet, ATrainerThatIgnoresItsDeadlineIsATimeout) {
  KubernetesCli cli(cluster_);
  cli.ExpectUnanswered(cli.Run({"run", cli.Write({.trainer = "ignore-term",
                                                  .kubernetes = "patch: {spec: {activeDeadlineSeconds: 4, "
                                                                "terminationGracePeriodSeconds: 2}}"})}));
  EXPECT_EQ(cli.Statuses(), "timeout");
  cli.ExpectNothingLeft();
}

TEST_F(Kubelet, AnImageThatCannotBePulledIsNoResult) {
  KubernetesCli cli(cluster_);
  const auto run = cli.Run(
      {"run", cli.Write({.kubernetes = "image: 127.0.0.1:9/absent:1, idle_limit: 8s", .launch = "retry: {image: 0}"})});
  cli.ExpectUnmeasured(run);
  EXPECT_EQ(cli.Ends(), "image");
  EXPECT_EQ(cli.EvidenceOfEnd("node", "image"), kNode);
  EXPECT_THAT(cli.OfEnd("message", "image"), AllOf(HasSubstr("cannot be pulled"), HasSubstr("127.0.0.1:9/absent:1")));
  cli.ExpectNothingLeft();
}

TEST_F(Kubelet, AnImageWithoutTheProgramStartsNothing) {
  KubernetesCli cli(cluster_);
  cli.ExpectUnmeasured(
      cli.Run({"run", cli.Write({.kubernetes = "program: /opt/nothing", .launch = "retry: {start: 0}"})}));
  EXPECT_EQ(cli.Ends(), "start");
  cli.ExpectNothingLeft();
}

TEST_F(Kubelet, APodThatFillsItsNodesDiskIsOfStorage) {
  KubernetesCli cli(cluster_);
  const auto run = cli.Run({"run", cli.Write({.trainer = "sleep",
                                              .kubernetes = "ephemeral_storage: 16Mi",
                                              .launch = "retry: {storage: 0}",
                                              .script = "head -c 64000000 /dev/zero >/ridgeline/work/much;"})});
  cli.ExpectUnmeasured(run);
  EXPECT_EQ(cli.Ends(), "storage");
  EXPECT_EQ(cli.EvidenceOfEnd("pod_reason", "storage"), "Evicted");
  cli.ExpectNothingLeft();
}

// A kubelet that ended leaves its pods running. The point is measured elsewhere, and the first pod's output is never
// read.
TEST_F(Kubelet, ALostNodeIsNoResultAndThePointRunsAgain) {
  const Kubernetes cluster = Kubernetes::Own({"--node-grace=8"});
  cluster.StartNode("127.0.1.1", {"--kubelet"});
  KubernetesCli cli(cluster);
  const auto sweep = cli.Write(
      {.trainer = "slow=8000",
       .kubernetes = "tolerations: [{key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, "
                     "tolerationSeconds: 1}], patch: {spec: {terminationGracePeriodSeconds: 1}}"});
  Child run = cli.Start({"run", sweep});
  ASSERT_TRUE(cli.WaitForStarts(1));
  // If a pod's node has not yet reported that it runs, nobody can tell later who took it away.
  ASSERT_TRUE(Eventually([&] {
    return cli.Kubectl({"get", "pods", "--output=jsonpath={.items[0].status.phase}"}) == "Running";
  }));
  cluster.OrphanNode("127.0.1.1");
  cluster.StartNode("127.0.1.2", {"--kubelet"});
  cli.ExpectOk(cli.Finish(run));
  EXPECT_EQ(cli.Ends(), "node ok") << cli.NotOk();
  EXPECT_EQ(cli.EvidenceOfEnd("node", "node"), "127.0.1.1");
  EXPECT_EQ(cli.Count("SELECT count(*) FROM results WHERE status = 'ok'"), 1);
}

}  // namespace
}  // namespace ridgeline
