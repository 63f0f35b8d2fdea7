// Jobs that become other projects' objects: what is made of them, and what their status says. tests/cluster has a real
// API server with their kinds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include <fmt/format.h>

#include "kubernetes/cause.h"
#include "kubernetes/manifest.h"
#include "kubernetes/pods.h"
#include "kubernetes/preflight.h"
#include "tests/plugins/kubernetes_session.h"

namespace ridgeline::kubernetes {
namespace {

using plugin::Failure;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kName = "rl-0123456789abcdef0123456789abcdef";

Manifests MadeOf(Json settings, const Json& more = Json::object()) {
  settings.emplace("image", "registry.example/team/ridgeline:1.0");
  Json job = {{"key", kName},
              {"sweep", "s"},
              {"job_file", "/out/job.json"},
              {"job_dir", "/out"},
              {"exec", {"/here/ridgeline", "exec", "/out/job.json"}},
              {"time_limit_s", 600}};
  job.update(more);
  return MakeManifests(job, "{}\n", ReadOptions({{"kubernetes", std::move(settings)}}), "", "a secret");
}

Json ConditionOf(const char* type, const char* status, const char* reason) {
  return {{"type", type},
          {"status", status},
          {"reason", reason},
          {"message", "m"},
          {"lastTransitionTime", "2026-01-01T00:10:00Z"}};
}
JobView ViewOf(const std::string& kind, const Json& conditions, const Json& settings = Json::object()) {
  Json with = settings;
  with["kind"] = kind;
  Json object = MadeOf(with).job;
  object["status"]["conditions"] = conditions;
  return ParseJob(object, *FindKind(kind));
}

// The golden files are those that the check of all manifests reads (tests/cluster).
TEST(KubernetesKinds, ManifestsOfEachAreTheGoldenOnes) {
  for (const Kind& kind : Kinds()) {
    if (&kind == &JobKind()) continue;
    for (const int nodes : {1, 2}) {
      const Manifests made =
          MadeOf({{"kind", kind.setting}, {"nodes", nodes}, {"gpus", 8}, {"cpu", 96}, {"memory", "1Ti"}});
      const auto golden = std::filesystem::path(RIDGELINE_SOURCE_DIR) / "tests/golden/kubernetes" /
                          fmt::format("{}-{}.yaml", kind.setting, nodes == 1 ? "one-node" : "two-nodes");
      const std::string text = ManifestFiles({made}).at(0).at("content");
      if (std::getenv("RIDGELINE_UPDATE_GOLDENS") != nullptr) WriteFileAtomic(golden, text);
      EXPECT_EQ(text, ReadFileIfThere(golden).value_or("")) << "RIDGELINE_UPDATE_GOLDENS=1 writes what it is now";
    }
  }
}

TEST(KubernetesKinds, ReadsEachKindsStateFromItsOwnFields) {
  for (const Kind& kind : Kinds()) {
    const JobView view = ViewOf(kind.setting, Json::array(), {{"nodes", 2}, {"start_limit", "1h"}, {"ttl", "2h"}});
    EXPECT_EQ(view.name, kName) << kind.name;
    EXPECT_EQ(view.pods, 2) << kind.name;
    EXPECT_EQ(view.deadline_s, 600 + 3600) << kind.name;
    EXPECT_EQ(view.ttl_s.value_or(7200), 7200) << kind.name;
    EXPECT_FALSE(view.HasEnded() || view.suspended || view.deleting) << kind.name;
    Json object = MadeOf({{"kind", kind.setting}}).job;
    object[Json::json_pointer(kind.suspend)] = true;
    EXPECT_TRUE(ParseJob(object, kind).suspended) << kind.name;
    const JobView ended = ViewOf(kind.setting, Json::array({ConditionOf(kind.complete, "True", "r")}));
    EXPECT_TRUE(ended.complete && !ended.failed) << kind.name;
    EXPECT_GT(ended.completed_unix_s, 0) << kind.name;
    const JobView failed = ViewOf(
        kind.setting, Json::array({ConditionOf("Failed", "True", "Why"), ConditionOf(kind.complete, "False", "r")}));
    EXPECT_TRUE(failed.failed && !failed.complete) << kind.name;
    EXPECT_EQ(failed.reason, "Why") << kind.name;
  }
}

TEST(KubernetesKinds, AJobSetsOwnRuleTellsItsDeadlineFromOtherEnds) {
  EXPECT_EQ(ViewOf("jobset", Json::array({ConditionOf("Failed", "True", "FailJobSetFailurePolicyAction")})).reason,
            "DeadlineExceeded");
  EXPECT_EQ(ViewOf("jobset", Json::array({ConditionOf("Failed", "True", "ReachedMaxRestarts")})).reason,
            "ReachedMaxRestarts");
  const JobView resumed = ViewOf("jobset", Json::array({ConditionOf("Suspended", "False", "ResumeJobs")}));
  EXPECT_EQ(resumed.started_unix_s, ParseTime("2026-01-01T00:10:00Z"));
}

// A controller may delete the pods at the deadline long before the object says that it failed. Only the start shows
// then that nobody else deleted them.
TEST(KubernetesKinds, APodDeletedAtItsDeadlineRanOutOfTimeBeforeAnyKindSaysSo) {
  const int64_t created_unix_s = ParseTime("2026-01-01T00:00:00Z");
  for (const Kind& kind : Kinds()) {
    Json object = MadeOf({{"kind", kind.setting}, {"start_limit", "1h"}}).job;
    object["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z";
    const auto end = [&, deadline_unix_s = created_unix_s + 600 + 3600](int64_t deleted_after_s) -> std::string {
      PodView pod;
      pod.phase = "Failed";
      pod.terminated = true;
      pod.exit_code = 143;
      pod.started_unix_s = created_unix_s + 5;
      pod.deletion_asked_unix_s = deadline_unix_s + deleted_after_s;
      pod.deleted_unix_s = pod.deletion_asked_unix_s + 30;
      const auto cause = CauseOf(ParseJob(object, kind), Summarize({{"pod", pod}}, pod.deleted_unix_s), &pod, Options(),
                                 pod.deleted_unix_s);
      return cause ? cause->end + cause->reason : "";
    };
    EXPECT_EQ(end(0), "timeout") << kind.name;
    EXPECT_THAT(end(-60), HasSubstr("preempted")) << kind.name;
    object["status"]["conditions"] = Json::array({ConditionOf("Suspended", "True", "r")});
    EXPECT_EQ(ParseJob(object, kind).started_unix_s, 0) << kind.name << ": it is about to be resumed";
  }
}

TEST(KubernetesKinds, NoOtherKindIsTakenAndAllJobsAreOfOne) {
  const auto refused = [](const Json& settings, const Json& more = Json::object()) -> std::string {
    try {
      MadeOf(settings, more);
      return "taken";
    } catch (const Failure& e) {
      return e.what();
    }
  };
  EXPECT_THAT(refused({{"kind", "Job"}}),
              AllOf(HasSubstr("kind is \"Job\""), HasSubstr("job, jobset, pytorchjob or trainjob")));
  const Json own = {{"config", {{"kubernetes", {{"kind", "jobset"}, {"image", "a:1"}}}}}};
  EXPECT_THAT(refused(Json::object(), own), HasSubstr("kubernetes: kind"));
  EXPECT_EQ(refused({{"kind", "jobset"}}, own), "taken");
}

TEST(KubernetesKinds, APyTorchJobHasWorkersAloneWhoseFirstIsFoundByName) {
  const Manifests made = MadeOf({{"kind", "pytorchjob"}, {"nodes", 2}});
  const Json& worker = made.job.at("spec").at("pytorchReplicaSpecs").at("Worker");
  EXPECT_EQ(worker.at("restartPolicy"), "Never");
  EXPECT_EQ(worker.at("template").at("spec").at("containers").at(0).at("name"), "pytorch");
  EXPECT_EQ(made.pod.at("spec").at("containers").at(0).at("name"), "ridgeline");
  const std::string all = made.job.dump();
  EXPECT_THAT(all, HasSubstr("metadata.labels['training.kubeflow.org/replica-index']"));
  EXPECT_THAT(all, HasSubstr(fmt::format(R"({{"name":"MASTER_ADDR","value":"{}"}})", kName)));
  for (const Json& other : made.others) {
    if (other.at("kind") != "Service") continue;
    EXPECT_EQ(other.at("spec").at("selector"),
              (Json{{"ridgeline.dev/job", kName}, {"training.kubeflow.org/replica-index", "0"}}));
  }
}

TEST(KubernetesKinds, ATrainJobsRuntimeSetsWhatTheTrainJobCannot) {
  const auto refused = [](Json settings) -> std::string {
    settings["kind"] = "trainjob";
    try {
      MadeOf(settings);
      return "taken";
    } catch (const Failure& e) {
      EXPECT_THAT(e.hint(), HasSubstr("training-runtime.yaml"));
      return e.what();
    }
  };
  EXPECT_EQ(refused({{"tolerations", {{{"key", "a"}, {"operator", "Exists"}}}}, {"service_account", "a"}}), "taken");
  EXPECT_THAT(refused({{"priority_class", "p"}}), HasSubstr("a TrainJob cannot say priorityClassName of its pods"));
  EXPECT_THAT(refused({{"trainer_image", "nvcr.io/a:1"}}), HasSubstr("initContainers of its pods"));
  EXPECT_THAT(refused({{"image_pull_policy", "Always"}}), HasSubstr("imagePullPolicy of its container"));
  EXPECT_THAT(refused({{"patch", {{"spec", {{"containers", {{{"name", "b"}, {"image", "b:1"}}}}}}}}}),
              HasSubstr("containers besides ridgeline"));
  const auto runtime = [](const char* setting) {
    return MadeOf({{"kind", "trainjob"}, {"runtime", setting}}).job.at("spec").at("runtimeRef").dump();
  };
  EXPECT_THAT(runtime("a"), AllOf(HasSubstr("\"ClusterTrainingRuntime\""), HasSubstr("\"name\":\"a\"")));
  EXPECT_THAT(runtime("TrainingRuntime/b"), AllOf(HasSubstr("\"TrainingRuntime\""), HasSubstr("\"name\":\"b\"")));
}

TEST(KubernetesKinds, ARuntimeThatRestartsIsNotUsed) {
  const auto why = [](const Json& job, const Json& set = Json::object()) {
    Json spec = {{"replicatedJobs", Json::array({{{"name", "node"}, {"template", {{"spec", job}}}}})}};
    spec.update(set);
    return WhyNot({{"spec", {{"template", {{"spec", spec}}}}}});
  };
  const Json never = {{"backoffLimit", 0}, {"template", {{"spec", {{"restartPolicy", "Never"}}}}}};
  EXPECT_EQ(why(never), "");
  EXPECT_EQ(why({{"backoffLimit", 0}}), "its restartPolicy is not Never");
  EXPECT_EQ(why({{"template", never.at("template")}}), "its backoffLimit is not 0");
  EXPECT_EQ(why(never, {{"failurePolicy", {{"maxRestarts", 3}}}}), "its failurePolicy restarts");
  EXPECT_EQ(WhyNot(Json::object()), "it has no replicated job named node");
}

class KubernetesKindsSession : public KubernetesSession {
 protected:
  KubernetesKindsSession() { Become("jobset"); }
  void Become(const char* kind) {
    world_.kind = FindKind(kind);
    options_.kind = world_.kind;
  }
};

TEST_F(KubernetesKindsSession, OwnsWhatItNeedsAndIsFollowed) {
  options_.nodes = 2;
  const auto session = Submitted();
  EXPECT_EQ(world_.Calls("POST /apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets"), 1);
  EXPECT_EQ(world_.others.at("configmaps").at("metadata").at("ownerReferences").at(0).at("kind"), "JobSet");
  EXPECT_FALSE(world_.others.contains("services")) << "JobSet's controller makes it";
  EXPECT_EQ(State(*session), "queued");
  SetPod("Running", Running(), {{"name", "a"}, {"annotations", {{kIndexAnnotation, "0"}}}});
  SetPod("Running", Running(), {{"name", "b"}, {"annotations", {{kIndexAnnotation, "1"}}}});
  EXPECT_EQ(State(*session), "running");
}

TEST_F(KubernetesKindsSession, WhyTheJobOfAJobSetGetsNoPodIsLookedUpByItsName) {
  const auto session = Submitted();
  world_.events.push_back({{"involvedObject", {{"uid", "another"}, {"name", "rl-1-node-0"}}},
                           {"message", "pods \"x\" is forbidden: no PriorityClass with name y was found"}});
  State(*session);
  world_.clock.Later(seconds(3));
  EXPECT_THAT(Poll(*session).at("evidence").at("waits"), HasSubstr("no PriorityClass"));
}

// Some controllers give a pod that replaces another the other's name.
TEST_F(KubernetesKindsSession, APodThatReplacesOneOfItsNameIsNotWaitedFor) {
  const auto session = Submitted();
  SetPod("Running", Running(), {{"uid", "first"}});
  EXPECT_EQ(State(*session), "running");
  world_.Take("pods", "pod");
  SetPod("Running", Running(), {{"uid", "second"}, {"creationTimestamp", "2026-01-01T00:01:00Z"}});
  EndLog();
  const Json ended = [&] {
    for (int i = 0; i < 100 && State(*session) != "ended"; ++i) {
      world_.clock.Later(seconds(10));
      SetPod("Failed", Terminated(1), {{"uid", "second"}, {"creationTimestamp", "2026-01-01T00:01:00Z"}});
    }
    return Poll(*session);
  }();
  EXPECT_EQ(ended.at("evidence").at("reason"), "preempted") << "the first pod's end";
}

TEST_F(KubernetesKindsSession, JobsOfTheFormerKindAreNotTakenForLost) {
  Submitted();
  Become("job");
  const auto changed = Open();
  try {
    State(*changed);
    ADD_FAILURE() << "polled";
  } catch (const Failure& e) {
    EXPECT_THAT(e.what(), HasSubstr("kind is job, and rl-1 was submitted as a jobset"));
  }
}

TEST_F(KubernetesKindsSession, AClusterThatLacksTheKindSaysSo) {
  ScriptedCluster cluster(world_);
  world_.has_kind = false;
  try {
    Preflight(cluster, options_);
    ADD_FAILURE() << "taken";
  } catch (const Failure& e) {
    EXPECT_THAT(e.what(), HasSubstr("the cluster has no JobSet (jobset.x-k8s.io/v1alpha2)"));
  }
  world_.has_kind = true;
  world_.forbidden = {"create jobsets"};
  try {
    Preflight(cluster, options_);
    ADD_FAILURE() << "taken";
  } catch (const Failure& e) {
    EXPECT_THAT(e.what(), HasSubstr("you may not create jobsets"));
    EXPECT_THAT(e.hint(), HasSubstr("driver-role-jobset.yaml"));
  }
}

}  // namespace
}  // namespace ridgeline::kubernetes
