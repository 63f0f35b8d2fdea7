// The Kubernetes launcher's session, on an API server that a test scripts, for cases that a real one cannot produce on
// demand, or not without waiting.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "kubernetes/manifest.h"
#include "tests/plugins/kubernetes_session.h"

namespace ridgeline::kubernetes {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST_F(KubernetesSession, FollowsAJobAndBringsItsResultHomeBeforeItDeletesIt) {
  const auto session = Submitted();
  EXPECT_EQ(State(*session), "queued");
  SetPod("Running", Running());
  EXPECT_EQ(State(*session), "running");
  SayResult();
  EndLog();
  SetPod("Succeeded", Terminated(0, "Completed"));
  SetJob("Complete");
  world_.clock.Later(seconds(2));
  const Json ended = Poll(*session);
  EXPECT_EQ(ended.at("state"), "ended");
  EXPECT_EQ(ended.at("native_id"), "uid-rl-1");
  EXPECT_EQ(ended.at("evidence").at("exit_code"), "0");
  EXPECT_FALSE(ended.at("evidence").contains("end"));
  EXPECT_EQ(ReadFile(dir_ / "jobs/rl-1/results.log"), FormatJobLine({std::string(kResultLine), "p", "{}"}));
  EXPECT_TRUE(world_.jobs.empty());
  EXPECT_EQ(Poll(*session), ended);
  EXPECT_EQ(Poll(*Open()), ended);  // as it was recorded
}

TEST_F(KubernetesSession, AReaderTakesNoLogKeepsNoEndAndDeletesNothing) {
  Submitted();
  SayResult();
  EndLog();
  SetPod("Succeeded", Terminated(0, "Completed"));
  SetJob("Complete");
  Session looking(dir_ / "state", options_, std::make_unique<ScriptedCluster>(world_), world_.clock);
  const auto states = looking.Look({"rl-1", "rl-unknown"});
  EXPECT_EQ(states[0].phase, plugin::Phase::kEnded);
  EXPECT_EQ(states[1].phase, plugin::Phase::kMissing);
  EXPECT_EQ(world_.Calls("DELETE"), 0);
  EXPECT_FALSE(std::filesystem::exists(dir_ / "jobs/rl-1/results.log"));
  EXPECT_EQ(State(*Open()), "ended") << "as its driver finds it";
  EXPECT_TRUE(std::filesystem::exists(dir_ / "jobs/rl-1/results.log"));
  EXPECT_EQ(world_.Calls("DELETE"), 1);
}

TEST_F(KubernetesSession, MakesTheSecretOfAJobOfSeveralPodsAndLeavesItToTheJob) {
  options_.nodes = 2;
  Submitted();
  EXPECT_EQ(world_.Calls("POST /api/v1/namespaces/default/secrets"), 1);
  EXPECT_EQ(world_.Calls("POST /api/v1/namespaces/default/services"), 1);
  EXPECT_EQ(world_.Calls("DELETE /api/v1/namespaces/default/secrets"), 0);
  EXPECT_EQ(world_.others.at("secrets").at("metadata").at("ownerReferences").at(0).at("uid"), "uid-rl-1");
}

// The first node's result is collected, and the Job's end tells the collector more.
TEST_F(KubernetesSession, AGangThatLostANodeEndsOfThatNodeWhateverItsFirstPodSays) {
  options_.nodes = 2;
  const auto session = Submitted();
  const auto rank = [](int index) {
    return Json{{"name", index == 0 ? "pod" : "other"}, {"annotations", {{kIndexAnnotation, std::to_string(index)}}}};
  };
  SetPod("Running", Running(), rank(0));
  SetPod("Running", Running(), rank(1));
  EXPECT_EQ(State(*session), "running");
  SayResult();
  EndLog();
  SetPod("Succeeded", Terminated(0, "Completed"), rank(0));
  EXPECT_EQ(State(*session), "running") << "the other may yet say something";
  Json lost = PodObject("Running", Running(), Disrupted("DeletionByTaintManager"), rank(1));
  lost["metadata"].update({{"labels", {{"ridgeline.dev/job", "rl-1"}}}, {"deletionTimestamp", "2001-09-09T01:47:10Z"}});
  lost["spec"]["nodeName"] = "n2";
  world_.Put("pods", lost);
  SetJob("Failed");
  world_.clock.Later(seconds(5));
  EXPECT_EQ(State(*session), "running") << "its log may yet come";
  world_.clock.Later(seconds(10));
  EXPECT_EQ(State(*session), "running") << "it may yet run";
  world_.Take("pods", "other");
  const Json ended = Poll(*session);
  EXPECT_EQ(ended.at("state"), "ended");
  EXPECT_EQ(ended.at("evidence").at("reason"), "node");
  EXPECT_EQ(ended.at("evidence").at("node"), "n2");
  EXPECT_EQ(ReadFile(dir_ / "jobs/rl-1/results.log"), FormatJobLine({std::string(kResultLine), "p", "{}"}));
}

TEST_F(KubernetesSession, WaitsForALogOnlySoLong) {
  const auto session = Submitted();
  SetPod("Running", Running());
  EXPECT_EQ(State(*session), "running");
  SetPod("Failed", Terminated(2));
  SetJob("Failed");
  Say("its last words");
  EXPECT_EQ(State(*session), "running");
  world_.clock.Later(seconds(9));
  EXPECT_EQ(State(*session), "running");
  world_.clock.Later(seconds(1));
  const Json ended = Poll(*session);
  EXPECT_EQ(ended.at("state"), "ended");
  EXPECT_EQ(ended.at("evidence").at("reason"), "start") << "of a trainer nothing was heard";
}

TEST_F(KubernetesSession, APodThatEndsUnderATrainerIsLost) {
  const auto session = Submitted();
  SetPod("Running", Running());
  std::string line = FormatJobLine({std::string(kProgressLine), "p", ""});
  line.pop_back();
  Say(line);
  EndLog();
  EXPECT_EQ(State(*session), "running");
  SetPod("Failed", Terminated(137));
  SetJob("Failed");
  EXPECT_EQ(State(*session), "running");  // a log without a result is read once more
  world_.clock.Later(seconds(10));
  EXPECT_EQ(Poll(*session).at("evidence").at("reason"), "lost");
}

TEST_F(KubernetesSession, SaysThatALogCannotBeRead) {
  const auto session = Submitted();
  world_.log_code = kForbidden;
  Say(R"({"message": "pods \"pod\" is forbidden: no log for you"})");
  EndLog();
  SetPod("Succeeded", Terminated(0, "Completed"));
  SetJob("Complete");
  EXPECT_EQ(State(*session), "running");
  world_.clock.Later(seconds(10));
  const Json evidence = Poll(*session).at("evidence");
  EXPECT_THAT(evidence.at("log_problem"), HasSubstr("no log for you"));
  EXPECT_THAT(evidence.at("message"), HasSubstr("cannot read the log of pod pod"));
}

// For example a mesh's proxy, or a shipper of logs.
TEST_F(KubernetesSession, AContainerBesideOursHoldsUpNothing) {
  const auto session = Submitted();
  SetPod("Running", Running());
  EXPECT_EQ(State(*session), "running");
  SayResult();
  EndLog();
  Json pod = world_.pods.at("pod");
  pod["status"]["containerStatuses"][0]["state"] = Terminated(0, "Completed");
  pod["status"]["containerStatuses"].push_back({{"name", "proxy"}, {"state", Running()}});
  world_.Put("pods", pod);  // its phase is Running, and the Job is not Complete
  EXPECT_EQ(State(*session), "ended");
  EXPECT_TRUE(world_.jobs.empty()) << "the Job is ended by us, and the other container with it";
}

// Otherwise a driver that lives for one poll, again and again, would never hear of the end.
TEST_F(KubernetesSession, OnePollTakesALogThatComesAtOnce) {
  Submitted();
  SetPod("Succeeded", Terminated(0, "Completed"));
  SetJob("Complete");
  world_.while_awaited = [&, times = 0]() mutable {
    if (++times != 3) return;
    SayResult();
    EndLog();
  };
  EXPECT_EQ(State(*Open()), "ended");
  EXPECT_EQ(ReadFile(dir_ / "jobs/rl-1/results.log"), FormatJobLine({std::string(kResultLine), "p", "{}"}));
}

TEST_F(KubernetesSession, SaysWhereALogHadNoResult) {
  const auto session = Submitted();
  Say("words");
  EndLog();
  SetPod("Succeeded", Terminated(0, "Completed"));
  SetJob("Complete");
  const Json evidence = Poll(*session).at("evidence");
  EXPECT_THAT(evidence.at("message"), HasSubstr("its log has no result of this point"));
  EXPECT_EQ(evidence.at("log_tail"), "words\n");
}

TEST_F(KubernetesSession, APodThatReplacesOneThatWasTakenAwayKeepsTheJobRunning) {
  const auto session = Submitted();
  SetPod("Running", Running());
  EXPECT_EQ(State(*session), "running");
  EndLog();
  SetPod("Failed", Terminated(143), kDeletion);
  SetPod("Running", Running(), {{"name", "replacement"}});
  EXPECT_EQ(State(*session), "running");
  EXPECT_EQ(State(*session), "running");  // a log without a result is read once more
  EXPECT_TRUE(world_.jobs.empty()) << "the end is written down, so the Job is deleted";
  world_.Take("pods", "replacement");
  const Json ended = Poll(*session);
  EXPECT_EQ(ended.at("state"), "ended");
  EXPECT_EQ(ended.at("evidence").at("reason"), "preempted");
  EXPECT_EQ(ended.at("evidence").at("pod"), "pod");
}

TEST_F(KubernetesSession, ASuspendedJobIsNoPreemption) {
  const auto session = Submitted();
  SetPod("Running", Running(), {{"creationTimestamp", "2001-09-09T01:46:41Z"}});
  EXPECT_EQ(State(*session), "running");
  Say("before");
  // The pods' end is known before its reason.
  world_.tells = false;
  Json job = world_.jobs.at("rl-1");
  job["spec"]["suspend"] = true;
  world_.Put("jobs", job);
  world_.tells = true;
  Json gone = kDeletion;
  gone["creationTimestamp"] = "2001-09-09T01:46:41Z";
  SetPod("Failed", Terminated(143), gone);
  const Json waits = Poll(*session);
  EXPECT_EQ(waits.at("state"), "queued");
  EXPECT_THAT(waits.at("evidence").at("waits"), HasSubstr("it is suspended"));
  world_.Take("pods", "pod");
  world_.clock.Later(seconds(1'000'000));
  EXPECT_EQ(State(*session), "queued");
  job["spec"]["suspend"] = false;
  job["status"]["startTime"] = "2001-09-20T00:00:00Z";
  world_.Put("jobs", job);
  EXPECT_EQ(State(*session), "queued");
  SetPod("Running", Running(), {{"name", "second"}, {"creationTimestamp", "2001-09-20T00:00:01Z"}});
  EXPECT_EQ(State(*session), "running");
  std::string line = FormatJobLine({std::string(kResultLine), "p", "{}"});
  line.pop_back();
  world_.LogOf("second")->lines.push_back(line);
  world_.LogOf("second")->ended = true;
  EndLog();
  SetPod("Succeeded", Terminated(0, "Completed"), {{"name", "second"}, {"creationTimestamp", "2001-09-20T00:00:01Z"}});
  const Json ended = Poll(*session);
  EXPECT_EQ(ended.at("state"), "ended");
  EXPECT_FALSE(ended.at("evidence").contains("end"));
  EXPECT_EQ(ended.at("evidence").at("pod"), "second");
}

// The driver hears of the pods' end before it hears that somebody deleted the Job and wants it gone.
TEST_F(KubernetesSession, ADeletedJobIsNoPreemption) {
  const auto session = Submitted();
  SetPod("Running", Running());
  EXPECT_EQ(State(*session), "running");
  Say("before");
  EndLog();
  world_.tells = false;
  world_.Take("jobs", "rl-1");
  world_.tells = true;
  SetPod("Failed", Terminated(143), kDeletion);
  Poll(*session);
  world_.Take("pods", "pod");
  const Json ended = Poll(*session);
  EXPECT_EQ(ended.at("state"), "ended");
  EXPECT_EQ(ended.at("evidence").at("end"), "cancelled");
  EXPECT_THAT(ended.at("evidence").at("message"), HasSubstr("somebody deleted the Job"));
}

// Deletion in the foreground: the Job stays until its pods have gone.
TEST_F(KubernetesSession, AJobThatIsBeingDeletedIsNoPreemption) {
  const auto session = Submitted();
  SetPod("Running", Running());
  EXPECT_EQ(State(*session), "running");
  Json job = world_.jobs.at("rl-1");
  job["metadata"]["deletionTimestamp"] = "2001-09-09T01:47:00Z";
  world_.Put("jobs", job);
  SetPod("Failed", Terminated(143), kDeletion);
  EndLog();
  Poll(*session);
  world_.Take("pods", "pod");
  const Json ended = Poll(*session);
  EXPECT_EQ(ended.at("state"), "ended");
  EXPECT_EQ(ended.at("evidence").at("end"), "cancelled");
}

TEST_F(KubernetesSession, AnImageThatComesWithinTheLimitRuns) {
  const auto session = Submitted();
  const Json no_image = {{"waiting", {{"reason", "ErrImagePull"}}}};
  SetPod("Pending", no_image);
  EXPECT_THAT(Poll(*session).at("evidence").at("waits"), HasSubstr("cannot be pulled"));
  world_.clock.Later(seconds(options_.idle_limit_s - 1));
  EXPECT_EQ(State(*session), "queued");
  SetPod("Running", Running());
  EXPECT_EQ(State(*session), "running");
  world_.clock.Later(seconds(100'000));
  EXPECT_EQ(State(*session), "running");
}

TEST_F(KubernetesSession, AnImageThatDoesNotComeIsGivenUp) {
  const auto session = Submitted();
  const Json no_image = {{"waiting", {{"reason", "ErrImagePull"}}}};
  SetPod("Pending", no_image);
  EXPECT_EQ(State(*session), "queued");
  world_.clock.Later(seconds(options_.idle_limit_s));
  EXPECT_EQ(State(*session), "running") << "given up, and its pod is still there";
  world_.Take("pods", "pod");
  const Json ended = Poll(*session);
  EXPECT_EQ(ended.at("evidence").at("end"), "infrastructure");
  EXPECT_EQ(ended.at("evidence").at("reason"), "image");
}

TEST_F(KubernetesSession, AsksWhatAContainerIsNotMadeOf) {
  const auto session = Submitted();
  const auto event = [](const char* time, const char* reason, const char* message) -> Json {
    return {{"lastTimestamp", time}, {"reason", reason}, {"message", message}};
  };
  world_.events = Json::array({event("2001-09-09T01:46:50Z", "FailedMount", "no such export"),
                               event("2001-09-09T01:46:41Z", "Scheduled", "x")});
  SetPod("Pending", {{"waiting", {{"reason", "ContainerCreating"}}}}, {{"uid", "pod-uid"}});
  EXPECT_FALSE(Poll(*session).contains("evidence"));
  EXPECT_EQ(world_.Calls("/events"), 0);
  world_.clock.Later(seconds(10));
  EXPECT_THAT(Poll(*session).at("evidence").at("waits"), HasSubstr("a volume is not mounted: FailedMount: no such"));
  EXPECT_EQ(world_.Calls("involvedObject.uid%3Dpod-uid"), 1);
  world_.clock.Later(seconds(29));
  Poll(*session);
  EXPECT_EQ(world_.Calls("/events"), 1) << "not with every poll";
}

TEST_F(KubernetesSession, AsksWhyAJobGetsNoPodAndGivesUpWhereNoWaitingHelps) {
  const auto session = Submitted();
  world_.events.push_back({{"involvedObject", {{"uid", "uid-rl-1"}}},
                           {"message", "pods \"x\" is forbidden: no PriorityClass with name y was found"}});
  EXPECT_EQ(State(*session), "queued");
  EXPECT_EQ(world_.Calls("/events"), 0);
  world_.clock.Later(seconds(3));
  EXPECT_THAT(Poll(*session).at("evidence").at("waits"), HasSubstr("no pod can be made"));
  EXPECT_EQ(State(*session), "queued");
  EXPECT_EQ(world_.Calls("/events"), 1) << "not with every poll";
  world_.clock.Later(seconds(7));
  const Json ended = Poll(*session);
  EXPECT_EQ(ended.at("state"), "ended");
  EXPECT_EQ(ended.at("evidence").at("reason"), "rights");
  EXPECT_THAT(ended.at("evidence").at("hint"), HasSubstr("priority_class"));
}

TEST_F(KubernetesSession, WithoutTheRightToReadEventsAJobStillWaits) {
  const auto session = Submitted();
  world_.events_code = kForbidden;
  State(*session);
  for (int i = 0; i < 5; ++i) {
    world_.clock.Later(seconds(10));
    EXPECT_EQ(State(*session), "queued");
  }
  EXPECT_EQ(world_.Calls("/events"), 1);
}

TEST_F(KubernetesSession, AJobThatIsNotHeardOfYetIsNotGone) {
  const auto session = Open();
  State(*session);
  world_.tells = false;
  session->Submit(Json::array({Job()}));
  EXPECT_EQ(State(*session), "queued");
  EXPECT_EQ(world_.Calls("GET /apis/batch/v1/namespaces/default/jobs/rl-1"), 1);
}

TEST_F(KubernetesSession, AnotherJobOfTheNameIsNotOurs) {
  const auto session = Submitted();
  Json theirs = world_.jobs.at("rl-1");
  theirs["metadata"]["uid"] = "theirs";
  theirs["metadata"]["annotations"][kHashAnnotation] = "another";
  world_.Take("jobs", "rl-1");
  world_.Put("jobs", theirs);
  EXPECT_EQ(Poll(*session).at("evidence").at("end"), "cancelled");
  EXPECT_TRUE(world_.jobs.contains("rl-1"));
}

// As by `kubectl replace --force`: its ConfigMaps went with the first Job, and nobody would ever collect it.
TEST_F(KubernetesSession, AJobOfOursThatSomebodyMadeAgainIsDeleted) {
  const auto session = Submitted();
  Json again = world_.jobs.at("rl-1");
  again["metadata"]["uid"] = "again";
  world_.Take("jobs", "rl-1");
  world_.Put("jobs", again);
  Json pod =
      PodObject("Running", Running(), Json::object(), {{"name", "pod"}, {"labels", {{"ridgeline.dev/job", "rl-1"}}}});
  pod["metadata"]["ownerReferences"] = {{{"kind", "Job"}, {"uid", "again"}}};
  world_.Put("pods", pod);
  SayResult();
  EXPECT_EQ(State(*session), "running") << "a pod of it still runs";
  EXPECT_TRUE(world_.jobs.empty());
  world_.Take("pods", "pod");
  EXPECT_EQ(Poll(*session).at("evidence").at("end"), "cancelled");
  EXPECT_FALSE(std::filesystem::exists(dir_ / "jobs/rl-1/results.log")) << "what that one said is not the first's";
}

TEST_F(KubernetesSession, AKeyIsCreatedOnceWhoeverAsks) {
  Submitted();
  EXPECT_EQ(Open()->Submit(Json::array({Job()}))[0].at("native_id"), "uid-rl-1");
  EXPECT_EQ(world_.Calls("POST /apis/batch/v1/namespaces/default/jobs"), 1);
}

TEST_F(KubernetesSession, ARefusedJobIsMissingAndMayBeSubmittedAgain) {
  world_.create_code = 422;
  const auto session = Open();
  EXPECT_EQ(session->Submit(Json::array({Job()}))[0].at("error").at("kind"), "invalid_input");
  world_.create_code = kForbidden;
  EXPECT_EQ(session->Submit(Json::array({Job()}))[0].at("error").at("reason"), "rights");
  EXPECT_EQ(State(*session), "missing");
  world_.create_code = 201;
  EXPECT_EQ(session->Submit(Json::array({Job()}))[0].at("native_id"), "uid-rl-1");
}

// ---- before anything is made

class KubernetesPreflight : public KubernetesSession {
 protected:
  // "kind: message / hint"; "" if there is no objection.
  std::string Refused() {
    ScriptedCluster cluster(world_);
    try {
      Preflight(cluster, options_);
      return "";
    } catch (const plugin::Failure& e) {
      return fmt::format("{}: {} / {}", e.ToJson().at("kind").get<std::string>(), e.what(), e.hint());
    }
  }
};

TEST_F(KubernetesPreflight, AsksOfAJobAndItsPodAndMakesNothing) {
  ScriptedCluster cluster(world_);
  EXPECT_EQ(Preflight(cluster, options_), "Kubernetes v1.31.0, namespace default");
  EXPECT_EQ(world_.Calls("/jobs?dryRun=All"), 1);
  EXPECT_EQ(world_.Calls("/pods?dryRun=All"), 1);
  EXPECT_TRUE(world_.jobs.empty());
  world_.forbidden = {"create pods"};  // as with the rights that ship with Ridgeline
  EXPECT_EQ(Refused(), "");
  EXPECT_EQ(world_.Calls("/pods?dryRun=All"), 1);
}

TEST_F(KubernetesPreflight, SaysThatAServerIsTooOld) {
  world_.version = {{"gitVersion", "v1.23.17-eks-1"}, {"major", "1"}, {"minor", "23+"}};
  EXPECT_EQ(Refused(), "");
  options_.most_nodes = 2;
  EXPECT_THAT(Refused(), AllOf(HasSubstr("infrastructure: the cluster is Kubernetes v1.23.17-eks-1"),
                               HasSubstr("points of several nodes need 1.24")));
  options_.most_nodes = 1;
  world_.version["minor"] = "19";
  EXPECT_THAT(Refused(), HasSubstr("Ridgeline needs 1.20"));
}

TEST_F(KubernetesPreflight, NamesAllRightsThatAreMissing) {
  world_.forbidden = {"get pods/log", "create configmaps", "create services"};
  EXPECT_THAT(Refused(), AllOf(HasSubstr("infrastructure: in namespace default you may not get pods/log, create "
                                         "configmaps / "),
                               HasSubstr("driver-role.yaml")));
  options_.most_nodes = 2;
  EXPECT_THAT(Refused(), HasSubstr("create configmaps, create services / "));
}

TEST_F(KubernetesPreflight, SaysWhatTheClusterHasAgainstAJobOrItsPod) {
  world_.dry_runs["Job"] = "Job is invalid: spec.template.spec.volumes[4].name: Duplicate value";
  EXPECT_THAT(Refused(),
              HasSubstr("invalid_input: launch: kubernetes: the cluster refuses such a Job: Job is invalid"));
  world_.dry_runs["Job"] = "admission webhook \"x\" does not support dry run";
  EXPECT_EQ(Refused(), "");
  world_.dry_runs["Pod"] = "pods \"rl-preflight\" is forbidden: no PriorityClass with name p was found";
  EXPECT_THAT(Refused(), AllOf(HasSubstr("infrastructure: the cluster refuses a pod of such a Job"),
                               HasSubstr("kubectl get priorityclass")));
  // Other pods may end, and points may ask for less.
  world_.dry_runs["Pod"] =
      "pods \"x\" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1";
  EXPECT_EQ(Refused(), "");
  world_.dry_runs["Pod"] =
      "pods \"x\" is forbidden: exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0";
  EXPECT_EQ(Refused(), "");
}

TEST_F(KubernetesPreflight, WithoutAnImageThereIsNothingToTry) {
  options_.image.clear();
  EXPECT_EQ(Refused(), "");
  EXPECT_EQ(world_.Calls("dryRun"), 0);
}

}  // namespace
}  // namespace ridgeline::kubernetes
