// Pods that are killed, evicted, preempted or never start, Jobs that others delete, and clusters that refuse. Checks
// what the store says, with its evidence and a hint.
#include <signal.h>

#include <functional>

#include "tests/cluster/kubernetes/kubernetes.h"

namespace ridgeline {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using testing::Eventually;
using ::testing::HasSubstr;
using testing::Kubernetes;
using testing::KubernetesCli;

class KubernetesFaults : public testing::OnKubernetes {
 protected:
  const Kubernetes cluster_ = Kubernetes::Shared();
};

TEST_F(KubernetesFaults, APodThatIsOutOfMemoryIsAResult) {
  KubernetesCli cli(cluster_);
  cli.ExpectUnanswered(cli.Run({"run", cli.Write({.trainer = "sleep", .kubernetes = KubernetesCli::Fault("oom")})}));
  EXPECT_EQ(cli.Statuses(), "oom_host");
  EXPECT_EQ(cli.Evidence("container_reason", "oom_host"), "OOMKilled");
  EXPECT_EQ(cli.Evidence("exit_code", "oom_host"), "137");
  EXPECT_THAT(cli.Of("message", "oom_host"), HasSubstr("held more memory than its limit"));
  EXPECT_THAT(cli.Of("hint", "oom_host"), HasSubstr("raise memory_limit"));
  cli.ExpectNothingLeft();
}

TEST_F(KubernetesFaults, AnEvictedPodIsPreemptedAndRunAgainAsOftenAsAsked) {
  KubernetesCli cli(cluster_);
  const auto run = cli.Run({"run", cli.Write({.trainer = "sleep",
                                              .kubernetes = KubernetesCli::Fault("evict"),
                                              .launch = "retry: {preempted: 2}"})});
  cli.ExpectUnmeasured(run);
  EXPECT_EQ(cli.Ends(), "preempted preempted preempted");
  EXPECT_EQ(cli.EvidenceOfEnd("pod_reason", "preempted"), "Evicted");
  EXPECT_THAT(cli.OfEnd("message", "preempted"), HasSubstr("low on resource: ephemeral-storage"));
  cli.ExpectNothingLeft();
}

TEST_F(KubernetesFaults, APreemptedPodIsPreempted) {
  KubernetesCli cli(cluster_);
  const auto run = cli.Run({"run", cli.Write({.trainer = "sleep",
                                              .kubernetes = KubernetesCli::Fault("preempt"),
                                              .launch = "retry: {preempted: 0}"})});
  cli.ExpectUnmeasured(run);
  EXPECT_EQ(cli.Ends(), "preempted");
  EXPECT_EQ(cli.EvidenceOfEnd("disruption", "preempted"), "PreemptionByScheduler");
  EXPECT_THAT(cli.OfEnd("message", "preempted"), HasSubstr("preempted by a pod of higher priority"));
  cli.ExpectNothingLeft();
}

TEST_F(KubernetesFaults, ARegistryThatIsAwayIsWaitedFor) {
  KubernetesCli cli(cluster_);
  const auto run = cli.Run({"run", cli.Write({.kubernetes = KubernetesCli::Fault("registry-away 40")})});
  cli.ExpectOk(run);
  EXPECT_THAT(run.out, AllOf(HasSubstr("waits: "), HasSubstr("cannot be pulled")));
  cli.ExpectEachRanOnce(1);
}

TEST_F(KubernetesFaults, AnImageThatCannotBePulledIsNoResult) {
  KubernetesCli cli(cluster_);
  const auto run = cli.Run({"run", cli.Write({.kubernetes = "idle_limit: 3s, " + KubernetesCli::Fault("imagepull"),
                                              .launch = "retry: {image: 0}"})});
  cli.ExpectUnmeasured(run);
  EXPECT_THAT(run.out, HasSubstr("waits: "));
  EXPECT_EQ(cli.Ends(), "image");
  EXPECT_EQ(cli.EvidenceOfEnd("node", "image"), "gpu-0");
  EXPECT_THAT(cli.OfEnd("message", "image"), AllOf(HasSubstr("cannot be pulled"), HasSubstr("test/ridgeline:1")));
  EXPECT_THAT(cli.OfEnd("hint", "image"), HasSubstr("image_pull_secrets"));
  cli.ExpectNothingLeft();
}

TEST_F(KubernetesFaults, AnImageWithoutTheProgramStartsNothing) {
  KubernetesCli cli(cluster_);
  cli.ExpectUnmeasured(
      cli.Run({"run", cli.Write({.kubernetes = "program: /opt/nothing", .launch = "retry: {start: 0}"})}));
  EXPECT_EQ(cli.Ends(), "start");
  EXPECT_THAT(cli.OfEnd("message", "start"), HasSubstr("cannot start the program"));
  cli.ExpectNothingLeft();
}

TEST_F(KubernetesFaults, ANodeThatRefusesAPodFailed) {
  KubernetesCli cli(cluster_);
  cli.ExpectUnmeasured(
      cli.Run({"run", cli.Write({.kubernetes = KubernetesCli::Fault("refuse"), .launch = "retry: {node: 0}"})}));
  EXPECT_EQ(cli.Ends(), "node");
  EXPECT_EQ(cli.EvidenceOfEnd("node", "node"), "gpu-0");
  EXPECT_THAT(cli.OfEnd("message", "node"), HasSubstr("refused the pod (OutOfcpu)"));
  cli.ExpectNothingLeft();
}

TEST_F(KubernetesFaults, AVolumeThatIsNotThereIsOfStorage) {
  const std::pair<const char*, const char*> volumes[] = {
      {"start_limit: 3s, output: {claim: nothing}", "persistentvolumeclaim \"nothing\" not found"},
      {"idle_limit: 14s, patch: {spec: {volumes: [{name: x, hostPath: {path: /nonexistent, type: Directory}}], "
       "containers: [{name: ridgeline, volumeMounts: [{name: x, mountPath: /x}]}]}}",
       "/nonexistent is not a directory"}};
  for (const auto& [settings, said] : volumes) {
    KubernetesCli cli(cluster_);
    cli.ExpectUnmeasured(cli.Run({"run", cli.Write({.kubernetes = settings, .launch = "retry: {storage: 0}"})}));
    EXPECT_EQ(cli.Ends(), "storage");
    EXPECT_THAT(cli.OfEnd("message", "storage"), HasSubstr(said));
    cli.ExpectNothingLeft();
  }
}

TEST_F(KubernetesFaults, AVolumeThatCannotBeWrittenIsOfStorage) {
  KubernetesCli cli(cluster_);
  std::filesystem::create_directory(cli.dir / "closed");  // has an effect only for users other than root
  const std::string patch =
      fmt::format("patch: {{spec: {{volumes: [{{name: work, emptyDir: null, hostPath: {{path: {}}}}}]}}}}",
                  (cli.dir / "closed").string());
  cli.ExpectUnmeasured(cli.Run({"run", cli.Write({.kubernetes = patch, .launch = "retry: {storage: 0}"})}));
  EXPECT_EQ(cli.Ends(), "storage");
  EXPECT_THAT(cli.OfEnd("message", "storage"), HasSubstr("/ridgeline/work"));
  cli.ExpectNothingLeft();
}

// For example a shipper of logs, or a mesh's proxy: it knows nothing about our container.
TEST_F(KubernetesFaults, AContainerThatGoesOnBesideOursHoldsUpNothing) {
  KubernetesCli cli(cluster_);
  cli.ExpectOk(cli.Run(
      {"run",
       cli.Write(
           {.kubernetes =
                "image: test/ridgeline:1, patch: {spec: {containers: [{name: shipper, image: test/shipper:1, command: "
                "[/bin/sh, -c, \"trap 'exit 1' TERM; while :; do sleep 0.1; done\"]}]}}"})}));
  cli.ExpectEachRanOnce(1);
}

TEST_F(KubernetesFaults, APodPastItsDeadlineIsATimeout) {
  KubernetesCli cli(cluster_);
  cli.ExpectUnanswered(cli.Run({"run", cli.Write({.trainer = "sleep",
                                                  .kubernetes = "patch: {spec: {activeDeadlineSeconds: 2, "
                                                                "terminationGracePeriodSeconds: 1}}"})}));
  EXPECT_EQ(cli.Statuses(), "timeout");
  EXPECT_THAT(cli.Of("message", "timeout"), HasSubstr("ran past the pod's deadline"));
  cli.ExpectNothingLeft();
}

TEST_F(KubernetesFaults, AJobPastItsDeadlineIsATimeout) {
  KubernetesCli cli(cluster_);
  Child run = cli.Start({"run", cli.Write({.trainer = "sleep"})});
  ASSERT_TRUE(cli.WaitForStarts(1));
  cli.Kubectl(
      {"patch", cli.Objects("jobs").at(0), "--type=merge", "--patch={\"spec\": {\"activeDeadlineSeconds\": 1}}"});
  cli.ExpectUnanswered(cli.Finish(run));
  EXPECT_EQ(cli.Statuses(), "timeout");
  // The Job's controller says DeadlineExceeded. Or, because it then sees a pod fail, BackoffLimitExceeded.
  EXPECT_THAT(cli.Of("message", "timeout"), HasSubstr("ran past the Job's deadline"));
  cli.ExpectNothingLeft();
}

TEST_F(KubernetesFaults, HeadlinesRemainOfALogThatWasRotatedAway) {
  KubernetesCli cli(cluster_);
  cli.ExpectOk(cli.Run({"run", cli.Write({.kubernetes = KubernetesCli::Fault("logs-rotated")})}));
  EXPECT_EQ(cli.Statuses(), "ok");
  EXPECT_THAT(cli.Evidence("headline_only", "ok"), HasSubstr("log was lost"));
  EXPECT_EQ(cli.Count("SELECT steady_tokens_per_s > 0 FROM results"), 1);
  cli.ExpectOneFinalResultEach(1, 1);
}

TEST_F(KubernetesFaults, PointsThatAreInNeitherLogNorLastWordsAreLost) {
  KubernetesCli cli(cluster_);
  const auto run = cli.Run({"run", cli.Write({.points = 20,
                                              .kubernetes = KubernetesCli::Fault("logs-rotated"),
                                              .launch = "bundle: 20\n  retry: {lost: 0}"})});
  cli.ExpectUnmeasured(run);
  EXPECT_THAT(cli.Ends(), AllOf(HasSubstr("ok ok"), HasSubstr("lost")));
  EXPECT_THAT(cli.OfEnd("message", "lost"), HasSubstr("its log was rotated away, or cut"));
  EXPECT_THAT(cli.OfEnd("hint", "lost"), HasSubstr("output: {claim:"));
}

// One of two points has its result when somebody deletes the Job of the other.
void DeleteAJobUnderASweep(const Kubernetes& cluster, const std::function<void(const KubernetesCli&, Child&)>& remove) {
  KubernetesCli cli(cluster);
  Child run = cli.Start({"run", cli.Write({.points = 2, .trainer = "slow=1000, sleep"})});
  ASSERT_TRUE(cli.WaitForStarts(2));
  ASSERT_TRUE(Eventually([&] { return cli.Objects("jobs").size() == 1; }));  // the other has been collected
  remove(cli, run);
  const auto output = cli.Finish(run);
  EXPECT_EQ(output.status.exit_code, 3) << output.out;
  EXPECT_EQ(cli.Statuses(), "cancelled ok");
  EXPECT_THAT(cli.Of("message", "cancelled"), HasSubstr("somebody deleted the Job"));
  EXPECT_THAT(cli.Of("hint", "cancelled"), HasSubstr("ridgeline run"));
  cli.ExpectNothingLeft();
}

TEST_F(KubernetesFaults, AJobThatSomebodyDeletesIsCancelled) {
  DeleteAJobUnderASweep(cluster_, [](const KubernetesCli& cli, Child&) {
    cli.Kubectl({"delete", cli.Objects("jobs").at(0)});
  });
}

TEST_F(KubernetesFaults, AJobThatSomebodyDeletesInTheForegroundIsCancelled) {
  DeleteAJobUnderASweep(cluster_, [](const KubernetesCli& cli, Child&) {
    cli.Kubectl({"delete", cli.Objects("jobs").at(0), "--cascade=foreground"});
  });
}

// The pod's last output is there before the driver hears of anything.
TEST_F(KubernetesFaults, AJobThatIsDeletedWhileNobodyLooksIsCancelled) {
  DeleteAJobUnderASweep(cluster_, [](const KubernetesCli& cli, Child& run) {
    ::kill(run.pid(), SIGSTOP);
    cli.Kubectl({"delete", cli.Objects("jobs").at(0)});
    EXPECT_TRUE(Eventually([&] { return cli.Objects("pods").empty(); }));
    ::kill(run.pid(), SIGCONT);
  });
}

TEST_F(KubernetesFaults, APodThatSomebodyDeletesIsRunAgain) {
  KubernetesCli cli(cluster_);
  Child run = cli.Start({"run", cli.Write({.script = KubernetesCli::kFirstHangs})});
  ASSERT_TRUE(cli.WaitForStarts(1));
  cli.Kubectl({"delete", "pods", "--all", "--wait=false"});
  cli.ExpectOk(cli.Finish(run));
  EXPECT_EQ(cli.Ends(), "ok preempted");
  EXPECT_THAT(cli.OfEnd("message", "preempted"), HasSubstr("its pod was deleted"));
  cli.ExpectOneFinalResultEach(1, 1);
}

TEST_F(KubernetesFaults, AnotherJobOfTheNameIsLeftAlone) {
  KubernetesCli cli(cluster_);
  const auto sweep = cli.Write({});
  cli.Kubectl({"create", "quota", "none", "--hard=count/jobs.batch=0"});
  Child first = cli.Start({"run", sweep});
  ASSERT_TRUE(cli.WaitToRead(first, "exceeded quota"));
  first.Signal(SIGKILL);
  first.Wait();
  const std::string name = cli.Cell("SELECT key FROM jobs");  // the Job that it was about to create
  cli.Kubectl({"delete", "quota", "none"});
  cli.Kubectl({"create", "job", name, "--image=theirs", "--", "/bin/sleep", "1"});
  const auto run = cli.Run({"run", sweep});
  EXPECT_EQ(run.status.exit_code, 3) << run.out;
  EXPECT_THAT(run.err, AllOf(HasSubstr("has a Job " + name), HasSubstr("knows nothing of"),
                             HasSubstr("kubectl delete job " + name)));
  EXPECT_EQ(cli.Objects("jobs"), std::vector<std::string>{"job.batch/" + name}) << "theirs is left alone";
  cli.Kubectl({"delete", "job", name});
  cli.ExpectOk(cli.Run({"run", sweep}));
  EXPECT_EQ(cli.Count("SELECT count(*) FROM latest WHERE status = 'ok'"), 1);
}

TEST_F(KubernetesFaults, WithoutRightsItSaysWhichAreMissing) {
  KubernetesCli cli(cluster_, false);
  const auto none = cli.Run({"run", cli.Write({})});
  EXPECT_EQ(none.status.exit_code, 3);
  EXPECT_THAT(none.err, AllOf(HasSubstr("you may not create jobs, get jobs"), HasSubstr("get pods/log"),
                              HasSubstr("driver-role.yaml")));
  cli.Kubectl({"create", "role", "looker", "--verb=get,list,watch", "--resource=jobs.batch,pods,pods/log"});
  cli.Kubectl({"create", "rolebinding", "looker", "--role=looker", "--user=driver-" + cli.name_space});
  const auto some = cli.Run({"run", cli.Write({})});
  EXPECT_EQ(some.status.exit_code, 3) << some.out;
  EXPECT_THAT(some.err, HasSubstr("you may not create jobs, delete jobs, create configmaps"));
  EXPECT_FALSE(std::filesystem::exists(cli.dir / "ridgeline.db"));
}

TEST_F(KubernetesFaults, RightsThatAreLostUnderASweepEndIt) {
  KubernetesCli cli(cluster_);
  WriteFileAtomic(cli.dir / "hold", "");
  const auto sweep =
      cli.Write({.points = 2, .launch = "max_parallel: 1", .script = "while [ -e /test/hold ]; do sleep 0.1; done;"});
  Child first = cli.Start({"run", sweep});
  ASSERT_TRUE(cli.WaitForStarts(1));
  cli.Kubectl({"delete", "rolebinding", "test"});
  std::filesystem::remove(cli.dir / "hold");
  const auto lost = cli.Finish(first);
  cli.ExpectUnmeasured(lost);
  EXPECT_THAT(lost.out + lost.err, HasSubstr("cannot create resource \"jobs\""));
  cli.Kubectl({"create", "rolebinding", "test", "--role=ridgeline-driver", "--user=driver-" + cli.name_space});
  cli.ExpectOk(cli.Run({"run", sweep}));
  EXPECT_EQ(cli.Count("SELECT count(*) FROM latest WHERE status = 'ok'"), 2);
}

TEST_F(KubernetesFaults, ADeletedNamespaceDoesNotCancelPoints) {
  KubernetesCli cli(cluster_);
  Child run = cli.Start({"run", cli.Write({.trainer = "sleep", .launch = "launcher_timeout: 5s"})});
  ASSERT_TRUE(cli.WaitForStarts(1));
  cluster_.Kubectl({"delete", "namespace", cli.name_space, "--wait=false"});
  const auto output = cli.Finish(run);
  cli.ExpectUnmeasured(output);
  EXPECT_THAT(output.out + output.err, AnyOf(HasSubstr("is being terminated"), HasSubstr("forbidden")));
  EXPECT_EQ(cli.Count("SELECT count(*) FROM results WHERE status = 'cancelled'"), 0);
}

TEST_F(KubernetesFaults, WithoutTheNamespaceItSaysSo) {
  KubernetesCli cli(cluster_);
  // Only an administrator learns that there is none. Other users have no rights there.
  ::setenv("KUBECONFIG", cluster_.Config("").parent_path().append("kubeconfig").c_str(), 1);
  const auto run = cli.Run({"run", cli.Write({.kubernetes = "namespace: nowhere"})});
  EXPECT_EQ(run.status.exit_code, 3);
  EXPECT_THAT(run.err, AllOf(HasSubstr("namespaces \"nowhere\" not found"), HasSubstr("kubectl create namespace")));
}

// A user who may create pods learns of the cluster's objections to them before there is a Job.
TEST_F(KubernetesFaults, APodIsTriedBeforeAnythingIsMade) {
  KubernetesCli cli(cluster_);
  ::setenv("KUBECONFIG", cluster_.Config("").parent_path().append("kubeconfig").c_str(), 1);
  const std::string in = "namespace: " + cli.name_space + ", ";
  const auto run = cli.Run({"run", cli.Write({.kubernetes = in + "priority_class: none"})});
  EXPECT_EQ(run.status.exit_code, 3);
  EXPECT_THAT(run.err, AllOf(HasSubstr("no PriorityClass with name none"), HasSubstr("kubectl get priorityclass")));
  EXPECT_FALSE(std::filesystem::exists(cli.dir / "ridgeline.db"));
  const auto wrong = cli.Run({"run", cli.Write({.kubernetes = in + "patch: {spec: {dnsPolicy: Nowhere}}"})});
  EXPECT_EQ(wrong.status.exit_code, 2) << wrong.out;
  EXPECT_THAT(wrong.err, AllOf(HasSubstr("the cluster refuses such a Job"), HasSubstr("dnsPolicy")));
}

TEST_F(KubernetesFaults, AServerThatIsTooOldIsToldOnce) {
  KubernetesCli cli(cluster_);
  const auto run = cli.Run({"run", cli.WriteReal("ranks: [2]", "nodes: 2")});
  EXPECT_EQ(run.status.exit_code, 3);
  EXPECT_THAT(run.err, HasSubstr("the cluster is Kubernetes v1.20.2, and points of several nodes need 1.24"));
}

// A renewed token is written where kubectl reads it.
TEST_F(KubernetesFaults, ATokenThatIsRenewedUnderASweepIsReadAgain) {
  KubernetesCli cli(cluster_);
  const auto secret = [&] {
    return cli.Kubectl({"get", "serviceaccount", "ridgeline-driver", "--output=jsonpath={.secrets[0].name}"});
  };
  const auto write_config = [&](const std::string& name) {
    WriteFileAtomic(cli.dir / "token", cli.Kubectl({"get", "secret", name, "--output=jsonpath={.data.token}"}));
    const Captured token = ridgeline::Run({"base64", "--decode", (cli.dir / "token").string()});
    Json config = ReadJsonFile(cluster_.dir() / "kubeconfig");
    config["users"][0]["user"] = {{"token", token.stdout_text}};
    config["contexts"][0]["context"]["namespace"] = cli.name_space;
    WriteFileAtomic(cli.dir / "kubeconfig", DumpJson(config));
  };
  const std::string first = secret();
  write_config(first);
  ::setenv("KUBECONFIG", (cli.dir / "kubeconfig").c_str(), 1);
  Child run = cli.Start({"run", cli.Write({.points = 3, .trainer = "slow=8000", .launch = "max_parallel: 1"})});
  ASSERT_TRUE(cli.WaitForStarts(1));
  cli.Kubectl({"delete", "secret", first});
  ASSERT_TRUE(Eventually([&] { return !secret().empty() && secret() != first; }));
  write_config(secret());
  cli.ExpectOk(cli.Finish(run));
  cli.ExpectEachRanOnce(3);
}

TEST_F(KubernetesFaults, AQuotaOfJobsIsWaitedFor) {
  KubernetesCli cli(cluster_);
  cli.Kubectl({"create", "quota", "few", "--hard=count/jobs.batch=2"});
  const auto run = cli.Run({"run", cli.Write({.points = 5, .trainer = "slow=500"})});
  cli.ExpectOk(run);
  EXPECT_THAT(run.out, HasSubstr("exceeded quota: few"));
  cli.ExpectOneFinalResultEach(5, 5);
}

TEST_F(KubernetesFaults, AQuotaOfPodsIsWaitedForAndOneBeyondItIsALimit) {
  KubernetesCli cli(cluster_);
  cli.Kubectl({"create", "quota", "small", "--hard=requests.cpu=2"});
  const auto small = cli.Run({"run", cli.Write({.points = 4, .trainer = "slow=1000"})});
  cli.ExpectOk(small);
  cli.ExpectOneFinalResultEach(4, 4);
  const auto large = cli.Run({"run", cli.Write({.points = 5, .trainer = "slow=1000", .kubernetes = "cpu: 3"})});
  cli.ExpectUnmeasured(large);
  // With other cores these are other measurements, also of the four points.
  EXPECT_EQ(cli.Ends(), "limit limit limit limit limit ok ok ok ok");
  EXPECT_THAT(cli.OfEnd("message", "limit"), HasSubstr("exceeded quota: small"));
  EXPECT_THAT(cli.OfEnd("hint", "limit"), HasSubstr("more than the namespace's quota has in all"));
  cli.ExpectNothingLeft();
}

TEST_F(KubernetesFaults, ThePodsReferencesMustExist) {
  for (const auto& [setting, hint] : {std::pair{"service_account: nobody", "kubectl get serviceaccount"},
                                      std::pair{"priority_class: none", "kubectl get priorityclass"}}) {
    KubernetesCli cli(cluster_);
    cli.ExpectUnmeasured(cli.Run({"run", cli.Write({.kubernetes = setting})}));
    EXPECT_EQ(cli.Ends(), "rights");
    EXPECT_THAT(cli.OfEnd("message", "rights"), HasSubstr("no pod can be made"));
    EXPECT_THAT(cli.OfEnd("hint", "rights"), HasSubstr(hint));
    cli.ExpectNothingLeft();
  }
}

TEST_F(KubernetesFaults, APodThatNoNodeHasRoomForSaysSo) {
  KubernetesCli cli(cluster_);
  Child run = cli.Start({"run", cli.Write({.kubernetes = "gpus: 64"})});
  EXPECT_TRUE(cli.WaitToRead(run, "Insufficient nvidia.com/gpu"));
  run.Signal(SIGINT);
  EXPECT_EQ(cli.Finish(run).status.exit_code, 130);
  cli.ExpectNothingLeft();
}

TEST_F(KubernetesFaults, ANodeThatIsLostIsANodeFailureAndThePointIsRunAgain) {
  const Kubernetes cluster = Kubernetes::Own({"--node-grace=6"});
  cluster.StartNode("n1", {"--heartbeat=1"});
  KubernetesCli cli(cluster);
  const auto sweep = cli.Write(
      {.kubernetes = "tolerations: [{key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, "
                     "tolerationSeconds: 1}], patch: {spec: {terminationGracePeriodSeconds: 1}}",
       .script = KubernetesCli::kFirstHangs});
  Child run = cli.Start({"run", sweep});
  ASSERT_TRUE(cli.WaitForStarts(1));
  cluster.StartNode("n2", {"--heartbeat=1"});
  cluster.KillNode("n1");
  cli.ExpectOk(cli.Finish(run));
  EXPECT_EQ(cli.Ends(), "node ok") << cli.Cell("SELECT message || evidence FROM results WHERE status <> 'ok'");
  EXPECT_EQ(cli.EvidenceOfEnd("node", "node"), "n1");
  EXPECT_THAT(cli.OfEnd("message", "node"), HasSubstr("node n1"));
  EXPECT_THAT(cli.OfEnd("hint", "node"), HasSubstr("kubectl get node"));
}

TEST_F(KubernetesFaults, IfEveryNodeIsSetAsideTheRunEndsAndNamesThem) {
  const Kubernetes cluster = Kubernetes::Own();
  for (const char* node : {"n1", "n2"}) cluster.StartNode(node);
  KubernetesCli cli(cluster);
  // More than can fail before both are set aside: two jobs on each node, and one more on each that had begun by then.
  const std::string launch = "launcher_timeout: 5s\n  retry: {node: 9}\n  max_parallel: 2\n  give_up_after: 8";
  const auto run =
      cli.Run({"run", cli.Write({.points = 4, .kubernetes = KubernetesCli::Fault("refuse"), .launch = launch})});
  cli.ExpectUnmeasured(run);
  EXPECT_THAT(run.err, AllOf(HasSubstr("4 of 4 points have no result; it stopped when 8 jobs in a row failed alike"),
                             HasSubstr("set aside: n1, where "), HasSubstr("n2, where "),
                             HasSubstr("refused the pod (OutOfcpu)"), HasSubstr("run them again with: ")));
  EXPECT_THAT(run.out, HasSubstr("is used again, as no other node can take its jobs: 0/2 nodes are available"));
  cli.ExpectNothingLeft();
  cli.ExpectOk(cli.Run({"run", cli.Write({.points = 4, .launch = launch})}));
  EXPECT_EQ(cli.Count("SELECT count(*) FROM latest WHERE status = 'ok'"), 4);
}

}  // namespace
}  // namespace ridgeline
