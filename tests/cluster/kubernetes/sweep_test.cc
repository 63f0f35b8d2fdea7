// Sweeps that end well, on a real API server: run, rendered and submitted by hand, cancelled, on a volume, confined.
#include <sstream>

#include "ridgeline/job_line.h"
#include "tests/cluster/kubernetes/kubernetes.h"

namespace ridgeline {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using testing::Eventually;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Kubernetes;
using testing::KubernetesCli;

constexpr const char* kSlowSteps = "batch_size: [64], seq_length: [256]";  // about a tenth of a second for each step
constexpr int kEndless = 1'000'000;  // more steps than the fastest machine takes while a test looks

class KubernetesSweeps : public testing::OnKubernetes {
 protected:
  const Kubernetes cluster_ = Kubernetes::Shared();
};

TEST_F(KubernetesSweeps, TheRealEngineFromSweepToReport) {
  KubernetesCli cli(cluster_);
  const auto sweep =
      cli.WriteReal("batch_size: [1, 2], checkpointing: [none, full]", "gpus: 2", "report: activation-checkpointing\n");
  const auto run = cli.Run({"run", sweep});
  cli.ExpectOk(run);
  EXPECT_THAT(run.out,
              AllOf(HasSubstr("jobs go to Kubernetes v1.20.2, namespace " + cli.name_space), HasSubstr("4 ok")));
  cli.ExpectOneFinalResultEach(4, 4);
  EXPECT_EQ(cli.Count("SELECT count(*) FROM results WHERE json_array_length(loss) = 3"), 4)
      << "whole results, from logs";
  EXPECT_EQ(cli.Count("SELECT count(*) FROM jobs WHERE started_unix_ns >= submitted_unix_ns - 1000000000"), 4);
  EXPECT_EQ(cli.Cell("SELECT evidence ->> '$.node' FROM jobs"), "gpu-0");
  EXPECT_THAT(ReadFile(cli.dir / "ridgeline-out/activation-checkpointing.html"), HasSubstr("</html>"));
  const auto again = cli.Run({"run", sweep});
  EXPECT_THAT(again.out, HasSubstr("4 ok"));
  EXPECT_EQ(cli.Count("SELECT count(*) FROM jobs"), 4) << "nothing is paid for twice";
}

TEST_F(KubernetesSweeps, TheClusterIsTheOneThatTheSweepNames) {
  KubernetesCli cli(cluster_);
  const std::string config = std::getenv("KUBECONFIG");
  const Captured context = ridgeline::Run({"kubectl", "--kubeconfig=" + config, "config", "current-context"});
  ::setenv("KUBECONFIG", "/nonexistent", 1);
  const std::string name = context.stdout_text.substr(0, context.stdout_text.find('\n'));
  const auto run =
      cli.Run({"run", cli.Write({.kubernetes = fmt::format("kubeconfig: {}, context: {}", config, name)})});
  cli.ExpectOk(run);
  EXPECT_THAT(run.out, HasSubstr("namespace " + cli.name_space));
  const auto nowhere =
      cli.Run({"run", cli.Write({.points = 2, .kubernetes = "kubeconfig: " + config + ", context: other"})});
  EXPECT_EQ(nowhere.status.exit_code, 3);
  EXPECT_THAT(nowhere.err, AllOf(HasSubstr("kubectl cannot be used"), HasSubstr("other")));
}

TEST_F(KubernetesSweeps, RenderedManifestsNeedNothingFromUs) {
  KubernetesCli cli(cluster_);
  const auto sweep = cli.WriteReal("batch_size: [1, 2, 3, 4]", "", "", 2);
  const auto rendered = cli.Run({"render", sweep, "--to", "jobs-by-hand"});
  cli.ExpectOk(rendered);
  EXPECT_THAT(rendered.out, HasSubstr("kubectl create -f " + (cli.dir / "jobs-by-hand").string()));
  EXPECT_THAT(rendered.out, HasSubstr("--selector=ridgeline.dev/sweep=test --tail=-1"));
  // This server is too old to know all fields of the manifests, and would complain.
  cli.Kubectl({"create", "--validate=false", "-f", cli.dir / "jobs-by-hand"});
  cli.Kubectl({"wait", "--for=condition=complete", "job", "--all", "--timeout=120s"});
  WriteFileAtomic(cli.dir / "jobs-by-hand/pods.log",
                  cli.Kubectl({"logs", "--selector=ridgeline.dev/sweep=test", "--tail=-1", "--max-log-requests=9"}));
  const auto collected = cli.Run({"collect", "jobs-by-hand"});
  cli.ExpectOk(collected);
  EXPECT_THAT(collected.out, AllOf(HasSubstr("4 new results"), HasSubstr("4 ok")));
  EXPECT_THAT(cli.Kubectl({"kustomize", cli.dir / "jobs-by-hand"}), HasSubstr("kind: Job"));
  // Applying them again changes nothing, and starts nothing.
  cli.Kubectl({"apply", "--validate=false", "-f", cli.dir / "jobs-by-hand"});
  cli.Kubectl({"delete", "-f", cli.dir / "jobs-by-hand"});
}

TEST_F(KubernetesSweeps, APodMayDoNothingButItsWork) {
  KubernetesCli cli(cluster_);
  const auto sweep = cli.Write(
      {.script =
           "{ id -u; id -g; grep -E 'NoNewPrivs|CapEff|CapBnd' /proc/self/status; touch /usr/x /x /ridgeline/job/x; "
           "ls /var/run/secrets/kubernetes.io; touch /tmp/x && echo tmp works; } >/test/seen 2>&1;"});
  cli.ExpectOk(cli.Run({"run", sweep}));
  const std::string seen = ReadFile(cli.dir / "seen");
  EXPECT_THAT(seen, AllOf(HasSubstr("65532\n65532\n"), HasSubstr("CapEff:\t0000000000000000"),
                          HasSubstr("CapBnd:\t0000000000000000"), HasSubstr("NoNewPrivs:\t1"), HasSubstr("tmp works")));
  for (const char* file : {"/usr/x", "/x", "/ridgeline/job/x"}) {
    EXPECT_THAT(seen, HasSubstr(fmt::format("'{}'", file))) << "written, not refused";
  }
  EXPECT_THAT(seen, HasSubstr("Read-only file system"));
  EXPECT_THAT(seen, HasSubstr("cannot access '/var/run/secrets"));
}

TEST_F(KubernetesSweeps, TextsArriveInAPodAsTheyWereWritten) {
  KubernetesCli cli(cluster_);
  const auto sweep =
      cli.Write({.kubernetes = "env: {ODD: \"$(HOME) $$(HOME) $$ $\"}", .script = "echo \"$ODD\" >/test/seen;"});
  cli.ExpectOk(cli.Run({"run", sweep}));
  EXPECT_EQ(ReadFile(cli.dir / "seen"), "$(HOME) $$(HOME) $$ $\n");
}

TEST_F(KubernetesSweeps, ATrainersOutputIsInItsPodsLog) {
  KubernetesCli cli(cluster_);
  Child run = cli.Start({"run", cli.Write({.trainer = "sleep", .script = "echo hello from the trainer;"})});
  EXPECT_TRUE(Eventually([&] {
    const Captured logs = cluster_.TryKubectl(  // are refused before the container exists
        {"logs", "--namespace=" + cli.name_space, "--selector=app.kubernetes.io/managed-by=ridgeline"});
    return logs.stdout_text.find("| hello from the trainer\n") != std::string::npos;
  }));
  run.Signal(SIGINT);
  cli.Finish(run);
}

// This server knows neither Kueue nor EFA. The node reports that it has what they ask for.
TEST_F(KubernetesSweeps, EveryProfileThatShipsIsTakenAndRuns) {
  cluster_.TryKubectl({"create", "priorityclass", "ridgeline", "--value=1000"});
  for (const char* name : {"aws-p5", "efa", "kueue", "one-zone", "priority", "rdma", "spread"}) {
    KubernetesCli cli(cluster_);
    const auto sweep =
        cli.Write({.kubernetes = fmt::format("memory: 1Gi, shared_memory: 64Mi, cpu: 1, profile: {}", name),
                   .script = "grep CapEff /proc/self/status >/test/seen;"});
    const auto doctor = cli.Run({"doctor", sweep});
    EXPECT_THAT(doctor.out, HasSubstr("sweep.yaml has it: Kubernetes v1.20.2")) << name;
    cli.ExpectOk(cli.Run({"run", sweep}));
    cli.ExpectEachRanOnce(1);
    EXPECT_EQ(ReadFile(cli.dir / "seen"), fmt::format("CapEff:\t{:016x}\n", name == std::string("rdma") ? 1 << 14 : 0))
        << name << ": IPC_LOCK, where it has an effect";
  }
}

TEST_F(KubernetesSweeps, ALargeBundleGoesThereInParts) {
  KubernetesCli cli(cluster_);
  Child run = cli.Start({"run", cli.Write({.points = 300, .trainer = "slow=5", .launch = "bundle: 300"})});
  EXPECT_TRUE(cli.WaitForStarts(1));
  EXPECT_GE(cli.Objects("configmaps").size(), 2U);
  cli.ExpectOk(cli.Finish(run));
  cli.ExpectOneFinalResultEach(300, 300);
  EXPECT_EQ(cli.Count("SELECT count(*) FROM jobs"), 1);
}

TEST_F(KubernetesSweeps, HundredsOfPointsOfASecondGoThroughAndNoneIsLostOrDoubled) {
  KubernetesCli cli(cluster_);
  Child run = cli.Start({"run", cli.Write({.points = 400, .trainer = "slow=1000", .kubernetes = "cpu: 100m"})});
  int64_t peak_bytes = 0;
  while (!run.WaitFor(200'000'000)) {
    const std::string status = ReadFileIfThere("/proc/" + std::to_string(run.pid()) + "/status").value_or("");
    if (const size_t at = status.find("VmHWM:"); at != std::string::npos) {
      peak_bytes = std::max<int64_t>(peak_bytes, std::atoll(status.c_str() + at + 6) * 1024);
    }
  }
  cli.ExpectOk(cli.Finish(run));
  cli.ExpectOneFinalResultEach(400, 400);
  EXPECT_EQ(cli.Starts(), 400);
  EXPECT_GT(peak_bytes, 0);
  EXPECT_LT(peak_bytes, 100'000'000) << "of the driver";
}

TEST_F(KubernetesSweeps, HowFarARunningPointIsComesHereToo) {
  KubernetesCli cli(cluster_);
  Child run = cli.Start({"run", cli.WriteReal(kSlowSteps, "", "", kEndless)});
  EXPECT_TRUE(Eventually([&] { return cli.StepsDone() > 0; }));
  run.Signal(SIGINT);
  EXPECT_EQ(cli.Finish(run).status.exit_code, 130);
  cli.ExpectNothingLeft();
}

TEST_F(KubernetesSweeps, CancellingDeletesWhatRunsAndWhatWaits) {
  KubernetesCli cli(cluster_);
  const auto sweep = cli.Write({.points = 3, .trainer = "sleep", .kubernetes = "gpus: 4"});
  Child run = cli.Start({"run", sweep});
  ASSERT_TRUE(cli.WaitForStarts(1));
  run.Signal(SIGKILL);
  run.Wait();
  const auto cancelled = cli.Run({"cancel", "test"});
  cli.ExpectOk(cancelled);
  EXPECT_EQ(cli.Statuses(), "cancelled cancelled cancelled");
  cli.ExpectNothingLeft();
}

TEST_F(KubernetesSweeps, AnInterruptEndsTheJobs) {
  KubernetesCli cli(cluster_);
  Child run = cli.Start({"run", cli.Write({.points = 2, .trainer = "sleep"})});
  ASSERT_TRUE(cli.WaitForStarts(2));
  run.Signal(SIGINT);
  EXPECT_EQ(cli.Finish(run).status.exit_code, 130);
  EXPECT_EQ(cli.Statuses(), "cancelled cancelled");
  cli.ExpectNothingLeft();
}

TEST_F(KubernetesSweeps, AVolumeKeepsCheckpointFilesForTheNextAttempt) {
  KubernetesCli cli(cluster_);
  const std::string volume = cli.dir / "volume";
  std::filesystem::create_directory(volume);
  std::filesystem::permissions(volume, std::filesystem::perms(0777));
  cluster_.Create({{"apiVersion", "v1"},
                   {"kind", "PersistentVolume"},
                   {"metadata", {{"name", cli.name_space}}},
                   {"spec",
                    {{"capacity", {{"storage", "1Gi"}}},
                     {"accessModes", {"ReadWriteMany"}},
                     {"storageClassName", cli.name_space},
                     {"hostPath", {{"path", volume}}}}}},
                  cli.name_space);
  cluster_.Create({{"apiVersion", "v1"},
                   {"kind", "PersistentVolumeClaim"},
                   {"metadata", {{"name", "results"}}},
                   {"spec",
                    {{"accessModes", {"ReadWriteMany"}},
                     {"storageClassName", cli.name_space},
                     {"resources", {{"requests", {{"storage", "1Gi"}}}}}}}},
                  cli.name_space);
  const auto sweep = cli.WriteReal(kSlowSteps, "output: {claim: results, path: " + volume + "}",
                                   "checkpoint: {dir: ckpt, every_steps: 5}\n", kEndless);
  Child run = cli.Start({"run", sweep});
  const std::string preempted = "FROM results WHERE status = 'infrastructure' AND reason = 'preempted'";
  const auto attempts = [&] { return cli.Count("SELECT count(*) " + preempted); };
  for (int64_t before = 0; before < 2; ++before) {
    ASSERT_TRUE(Eventually([&] { return cli.StepsDone() > 10 && attempts() == before; })) << cli.NotOk();
    cli.Kubectl({"delete", "pods", "--all", "--wait=false"});  // as a drain does
  }
  ASSERT_TRUE(Eventually([&] { return attempts() == 2; })) << cli.NotOk();
  run.Signal(SIGINT);
  cli.Finish(run);
  const auto step = [&](const std::string& name, int attempt) {
    return cli.Count(
        fmt::format("SELECT CAST(evidence ->> '$.{}' AS INTEGER) {} AND attempt = {}", name, preempted, attempt));
  };
  EXPECT_GT(step("checkpoint_step", 1), 10) << cli.NotOk();
  // The pod that the Job's controller starts instead of the first may also have taken some steps.
  EXPECT_GE(step("resumed_from_step", 2), step("checkpoint_step", 1)) << cli.NotOk();
  cli.ExpectNothingLeft();
  cluster_.TryKubectl({"delete", "persistentvolume", cli.name_space, "--wait=false"});
}

TEST_F(KubernetesSweeps, AFaultInTheSettingsIsToldBeforeAnythingIsMade) {
  KubernetesCli cli(cluster_);
  const auto plan = cli.Run({"plan", cli.Write({.kubernetes = "memory: 64GB"})});
  EXPECT_EQ(plan.status.exit_code, 2);
  EXPECT_THAT(plan.err, AllOf(HasSubstr("launch: kubernetes: memory is \"64GB\""), HasSubstr("writes 64GB as 64G")));
  EXPECT_THAT(cli.Objects("jobs"), IsEmpty());
}

// The cluster keeps the same objects for every gang. This server knows no Indexed Jobs, so the test makes the two pods
// of one as its controller would.
class KubernetesGangs : public testing::OnKubernetes {
 protected:
  // Renders the job of a sweep into the folder `gang`, and runs it to its end. The pods' logs are beside it then.
  static void RunGang(const Kubernetes& cluster, KubernetesCli& cli, const std::filesystem::path& sweep,
                      const std::string& phases) {
    cli.ExpectOk(cli.Run({"render", sweep, "--to", "gang"}));
    std::string manifest;
    for (const auto& entry : std::filesystem::directory_iterator(cli.dir / "gang")) {
      if (entry.path().extension() == ".yaml") manifest = entry.path();
    }
    const Captured read = ridgeline::Run(
        {"python3", "-c", "import json, sys, yaml; json.dump(list(yaml.safe_load_all(open(sys.argv[1]))), sys.stdout)",
         manifest});
    ASSERT_TRUE(read.status.ok()) << read.stderr_text;
    Json job;
    for (const Json& object : ParseJson(read.stdout_text, manifest)) {
      if (object.at("kind") == "Job") {
        job = object;
      } else {
        cluster.Create(object, cli.name_space);
      }
    }
    ASSERT_EQ(job.at("spec").at("completionMode"), "Indexed");
    const auto name = job.at("metadata").at("name").get<std::string>();
    for (int index = 0; index < 2; ++index) {
      Json pod = job.at("spec").at("template");
      pod["apiVersion"] = "v1";
      pod["kind"] = "Pod";
      pod["metadata"]["name"] = fmt::format("{}-{}", name, index);
      pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] = std::to_string(index);
      pod["spec"]["hostname"] = fmt::format("{}-{}", name, index);
      cluster.Create(pod, cli.name_space);
    }
    const auto now = [&] { return cli.Kubectl({"get", "pods", "--output=jsonpath={.items[*].status.phase}"}); };
    EXPECT_TRUE(Eventually([&] { return now().find("ing") == std::string::npos; })) << now();
    for (int index = 0; index < 2; ++index) {
      const std::string log = cli.Kubectl({"logs", fmt::format("{}-{}", name, index)});
      WriteFileAtomic(cli.dir / fmt::format("gang/{}.log", index), log);
      if (now() != phases) ADD_FAILURE() << log;
    }
    EXPECT_THAT(cli.Kubectl({"get", "pods", "--output=jsonpath={.items[*].spec.nodeName}"}), AnyOf("n1 n2", "n2 n1"));
  }
};

TEST_F(KubernetesGangs, RanksOnTwoPodsFindEachOtherAndEachTellsItsPart) {
  const Kubernetes cluster = Kubernetes::Own();
  cluster.StartNode("n1");  // the two pods must not share a node
  cluster.StartNode("n2");
  {
    KubernetesCli cli(cluster);
    RunGang(cluster, cli, cli.WriteReal("ranks: [4]", "nodes: 2", "", 4), "Succeeded Succeeded");
    const auto collected = cli.Run({"collect", "gang"});
    EXPECT_THAT(collected.out, HasSubstr("1 ok"));
    EXPECT_EQ(cli.Cell("SELECT communicator_name FROM results"), "gloo");
    EXPECT_EQ(cli.Count("SELECT tokens_per_step FROM results"), int64_t{4} * 32) << "of all ranks";
  }
  KubernetesCli cli(cluster);
  RunGang(cluster, cli, cli.WriteTwoNodes("kubernetes", cli.Settings(""), "/test"), "Succeeded Succeeded");
  // Without the log of the node that reported the speed, nothing is collected.
  std::filesystem::rename(cli.dir / "gang/1.log", cli.dir / "1.log");
  EXPECT_THAT(cli.Run({"collect", "gang"}).err, HasSubstr("lacks what its other nodes' pods say"));
  std::filesystem::rename(cli.dir / "1.log", cli.dir / "gang/1.log");
  cli.Run({"collect", "gang"});
  cli.ExpectTwoNodes();
}

}  // namespace
}  // namespace ridgeline
