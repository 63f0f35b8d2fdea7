// Sweeps whose jobs become other projects' objects. A real API server has their kinds, and doubles stand for their
// controllers (../kubernetes-controllers).
#include <string>

#include "tests/cluster/kubernetes/kubernetes.h"

namespace ridgeline {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using testing::Eventually;
using ::testing::HasSubstr;
using testing::Kubernetes;
using testing::KubernetesCli;

// One of them, and what a test does to its objects. "{}" stands for the job's name.
struct OtherKind {
  std::string kind;
  std::string suspended;  // the field, as a JSON pointer
  std::string deadline;   // the field, as a JSON pointer
  std::string made_job;   // the Job that has the deadline too, if a controller copied it there; else empty
};
void PrintTo(const OtherKind& one, std::ostream* out) { *out << one.kind; }

// Sets one field, "/spec/suspend".
std::string PatchOf(const std::string& field, const Json& value) {
  Json patch;
  patch[Json::json_pointer(field)] = value;
  return "--patch=" + DumpJson(patch);
}

class KubernetesKinds : public testing::OnKubernetes, public ::testing::WithParamInterface<OtherKind> {
 protected:
  // As `kubernetes` of a sweep.
  static std::string Settings(const std::string& more = "") {
    return fmt::format("kind: {}{}{}", GetParam().kind, more.empty() ? "" : ", ", more);
  }
  static std::string NameOf(const KubernetesCli& cli) {
    const std::string object = cli.Objects(GetParam().kind).at(0);
    return object.substr(object.find('/') + 1);
  }
  static void Suspend(const KubernetesCli& cli, bool value) {
    cli.Kubectl({"patch", GetParam().kind, NameOf(cli), "--type=merge", PatchOf(GetParam().suspended, value)});
  }

  const Kubernetes cluster_ = Kubernetes::Shared();
};

TEST_P(KubernetesKinds, ASweepRunsAndLeavesNothing) {
  KubernetesCli cli(cluster_, true, GetParam().kind);
  const auto sweep = cli.Write({.points = 3, .kubernetes = Settings()});
  EXPECT_THAT(cli.Run({"doctor", sweep}).out, HasSubstr("sweep.yaml has it: Kubernetes v1.20.2"));
  cli.ExpectOk(cli.Run({"run", sweep}));
  cli.ExpectEachRanOnce(3);
  EXPECT_EQ(cli.Cell("SELECT evidence ->> '$.node' FROM jobs"), "gpu-0");
}

TEST_P(KubernetesKinds, ADriverThatIsKilledFindsItsOwn) {
  KubernetesCli cli(cluster_, true, GetParam().kind);
  const auto sweep = cli.Write({.points = 2, .trainer = "slow=3000", .kubernetes = Settings()});
  Child run = cli.Start({"run", sweep});
  ASSERT_TRUE(cli.WaitForStarts(2));
  run.Signal(SIGKILL);
  run.Wait();
  cli.ExpectOk(cli.Run({"run", sweep}));
  cli.ExpectEachRanOnce(2);
}

TEST_P(KubernetesKinds, ItsEndsAreThoseOfJobs) {
  {
    KubernetesCli cli(cluster_, true, GetParam().kind);
    cli.ExpectUnanswered(
        cli.Run({"run", cli.Write({.trainer = "sleep", .kubernetes = Settings(KubernetesCli::Fault("oom"))})}));
    EXPECT_EQ(cli.Statuses(), "oom_host");
    cli.ExpectNothingLeft();
  }
  {
    KubernetesCli cli(cluster_, true, GetParam().kind);
    cli.ExpectUnmeasured(
        cli.Run({"run", cli.Write({.kubernetes = Settings("program: /opt/nothing"), .launch = "retry: {start: 0}"})}));
    EXPECT_EQ(cli.Ends(), "start");
    cli.ExpectNothingLeft();
  }
  KubernetesCli cli(cluster_, true, GetParam().kind);
  Child run = cli.Start({"run", cli.Write({.kubernetes = Settings(), .script = KubernetesCli::kFirstHangs})});
  ASSERT_TRUE(cli.WaitForStarts(1));
  cli.Kubectl({"delete", "pods", "--all", "--wait=false"});
  cli.ExpectOk(cli.Finish(run));
  // A PyTorchJob's operator makes a new pod if the old one is gone before the operator has seen it fail.
  const bool may_go_on = GetParam().kind == "pytorchjob";
  EXPECT_THAT(cli.Ends(), AnyOf("ok preempted", may_go_on ? "ok" : "ok preempted"));
  EXPECT_GE(cli.Starts(), 2) << "a Job's controller may start a pod of its own before the launcher deletes the Job";
  cli.ExpectOneFinalResultEach(1, 1);
}

TEST_P(KubernetesKinds, SomebodyDeletesIt) {
  KubernetesCli cli(cluster_, true, GetParam().kind);
  Child run = cli.Start({"run", cli.Write({.trainer = "sleep", .kubernetes = Settings()})});
  ASSERT_TRUE(cli.WaitForStarts(1));
  cli.Kubectl({"delete", GetParam().kind, "--all", "--wait=false"});
  cli.Finish(run);
  EXPECT_EQ(cli.Statuses(), "cancelled");
  cli.ExpectNothingLeft();
}

TEST_P(KubernetesKinds, PastItsDeadlineItIsATimeout) {
  KubernetesCli cli(cluster_, true, GetParam().kind);
  Child run = cli.Start({"run", cli.Write({.trainer = "sleep", .kubernetes = Settings()})});
  ASSERT_TRUE(cli.WaitForStarts(1));
  const Json deadline = {{"op", "add"}, {"path", GetParam().deadline}, {"value", 1}};
  cli.Kubectl({"patch", GetParam().kind, NameOf(cli), "--type=json", "--patch=" + DumpJson(Json::array({deadline}))});
  if (!GetParam().made_job.empty()) {
    cli.Kubectl({"patch", fmt::format(fmt::runtime(GetParam().made_job), NameOf(cli)), "--type=merge",
                 PatchOf("/spec/activeDeadlineSeconds", 1)});
  }
  cli.ExpectUnanswered(cli.Finish(run));
  EXPECT_EQ(cli.Statuses(), "timeout");
  EXPECT_THAT(cli.Of("message", "timeout"), HasSubstr("deadline"));
  cli.ExpectNothingLeft();
}

TEST_P(KubernetesKinds, SuspendedItWaitsAndResumedItStartsAnew) {
  KubernetesCli cli(cluster_, true, GetParam().kind);
  Child run = cli.Start({"run", cli.Write({.kubernetes = Settings(), .script = KubernetesCli::kFirstHangs})});
  ASSERT_TRUE(cli.WaitForStarts(1));
  Suspend(cli, true);
  ASSERT_TRUE(cli.WaitToRead(run, "it is suspended"));
  EXPECT_TRUE(Eventually([&] { return cli.Objects("pods").empty(); }));
  Suspend(cli, false);
  cli.ExpectOk(cli.Finish(run));
  EXPECT_EQ(cli.Ends(), "ok") << "no end is that of its suspension";
  EXPECT_EQ(cli.Starts(), 2);
}

TEST_P(KubernetesKinds, WhyItGetsNoPodIsToldAndOneBeyondTheQuotaEnds) {
  KubernetesCli cli(cluster_, true, GetParam().kind);
  cli.Kubectl({"create", "quota", "few", "--hard=pods=0"});
  const auto run = cli.Run({"run", cli.Write({.kubernetes = Settings(), .launch = "retry: {limit: 0}"})});
  cli.ExpectUnmeasured(run);
  EXPECT_EQ(cli.Ends(), "limit");
  EXPECT_THAT(cli.OfEnd("message", "limit"), HasSubstr("exceeded quota"));
  cli.ExpectNothingLeft();
}

// Each pod of the gang waits for the other.
TEST_P(KubernetesKinds, RanksOnTwoPodsFindEachOther) {
  const Kubernetes cluster = Kubernetes::Own();
  cluster.StartControllers();
  cluster.StartNode("n1");
  cluster.StartNode("n2");
  KubernetesCli cli(cluster, true, GetParam().kind);
  const auto run = cli.Run({"run", cli.WriteReal("ranks: [4]", Settings("nodes: 2"), "", 4)});
  cli.ExpectOk(run);
  EXPECT_EQ(cli.Cell("SELECT communicator_name FROM results"), "gloo");
  EXPECT_EQ(cli.Count("SELECT tokens_per_step FROM results"), int64_t{4} * 32) << "of all ranks";
  EXPECT_THAT(cli.Cell("SELECT evidence ->> '$.pods' FROM jobs"), AllOf(HasSubstr("on n1"), HasSubstr("on n2")));
  cli.ExpectNothingLeft();
}

INSTANTIATE_TEST_SUITE_P(
    Of, KubernetesKinds,
    ::testing::Values(OtherKind{"jobset", "/spec/suspend", "/spec/replicatedJobs/0/template/spec/activeDeadlineSeconds",
                                "job/{}-node-0"},
                      OtherKind{"pytorchjob", "/spec/runPolicy/suspend", "/spec/runPolicy/activeDeadlineSeconds", ""},
                      OtherKind{"trainjob", "/spec/suspend", "/spec/activeDeadlineSeconds", ""}),
    [](const auto& info) { return info.param.kind; });

// A node that is taken leaves room for half a gang. The scheduler starts none of it, and says why.
TEST(KubernetesGangScheduler, AGangWaitsForAllItsNodesAndTheRunSaysSo) {
  if (const std::string why = testing::WhyNoKubernetes(); !why.empty()) GTEST_SKIP() << why;
  const Kubernetes cluster = Kubernetes::Own();
  cluster.StartControllers();
  cluster.StartNode("n1", {"--capacity=cpu=1"});
  cluster.StartNode("n2", {"--capacity=cpu=1"});
  KubernetesCli cli(cluster, true, "pytorchjob");
  cli.TakeRole("-gangs");
  cluster.Create({{"apiVersion", "v1"},
                  {"kind", "Pod"},
                  {"metadata", {{"name", "another"}}},
                  {"spec",
                   {{"nodeName", "n2"},
                    {"containers",
                     {{{"name", "c"},
                       {"image", "test/ridgeline:1"},
                       {"command", {"sleep", "600"}},
                       {"resources", {{"requests", {{"cpu", "1"}}}}}}}}}}},
                 cli.name_space);
  const auto sweep = cli.WriteReal("ranks: [4], seed: [1, 2]", "kind: pytorchjob, profile: volcano, nodes: 2", "", 4);
  Child run = cli.Start({"run", sweep, "--max-parallel", "2"});
  ASSERT_TRUE(cli.WaitToRead(run, "its gang is not scheduled: NotEnoughResources: 2/2 tasks in gang unschedulable"));
  EXPECT_EQ(cli.Objects("podgroups").size(), 2U) << "both gangs are in the cluster";
  EXPECT_EQ(cli.Kubectl({"get", "pods", "--output=jsonpath={.items[*].spec.nodeName}"}), "n2") << "not half a gang";
  cli.Kubectl({"delete", "pod", "another", "--grace-period=0", "--force"});
  cli.ExpectOk(cli.Finish(run));
  EXPECT_EQ(cli.Ends(), "ok ok");
  EXPECT_TRUE(Eventually([&] { return cli.Objects("podgroups").empty(); })) << "each goes with its job";
  cli.ExpectNothingLeft();
}

TEST(KubernetesWithoutKinds, SaysWhichKindTheClusterLacks) {
  if (const std::string why = testing::WhyNoKubernetes(); !why.empty()) GTEST_SKIP() << why;
  const Kubernetes cluster = Kubernetes::Own();
  KubernetesCli cli(cluster);
  const auto run = cli.Run({"run", cli.Write({.kubernetes = "kind: jobset"})});
  cli.ExpectUnmeasured(run);
  EXPECT_THAT(run.err, HasSubstr("the cluster has no JobSet (jobset.x-k8s.io/v1alpha2)"));
}

}  // namespace
}  // namespace ridgeline
