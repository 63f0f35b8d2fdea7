// The Kubernetes launcher's session, on an API server that a test scripts: for what a real one cannot be made to do on
// demand, or not without waiting.
#include "kubernetes/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

#include "base/files.h"
#include "ridgeline/job_line.h"
#include "tests/base/temp_dir.h"
#include "tests/plugins/answering.h"
#include "tests/plugins/kubernetes_objects.h"
#include "tests/plugins/scripted_cluster.h"

namespace ridgeline::kubernetes {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

const Json kGone = {{"deletionTimestamp", "2001-09-09T01:46:40Z"}};  // the clock's first second

using Asked = testing::Answering<Session>;

class KubernetesSession : public ::testing::Test {
 protected:
  // Each is a new driver that knows only the folder.
  std::unique_ptr<Asked> Open() {
    return std::make_unique<Asked>(
        std::make_unique<Session>(dir_ / "state", options_, std::make_unique<ScriptedCluster>(world_), world_.clock));
  }

  // A job of one point, "p".
  Json Job() {
    const std::filesystem::path job_dir = dir_ / "jobs/rl-1";
    std::filesystem::create_directories(job_dir);
    WriteFileAtomic(job_dir / "job.json", R"({"points": [{"id": "p"}]})");
    const std::string file = job_dir / "job.json";
    return {{"key", "rl-1"},
            {"sweep", "s"},
            {"job_file", file},
            {"job_dir", job_dir.string()},
            {"exec", {"ridgeline", "exec", file}}};
  }
  std::unique_ptr<Asked> Submitted() {
    auto session = Open();
    EXPECT_EQ(session->Submit(Json::array({Job()}))[0].at("native_id"), "uid-rl-1");
    return session;
  }
  static Json Poll(Asked& session) { return session.Poll(Json::array({{{"key", "rl-1"}}})).at(0); }
  static std::string State(Asked& session) { return Poll(session).at("state").get<std::string>(); }

  // The Job and a pod of it as they now are.
  void SetJob(const char* condition) {
    Json job = world_.jobs.at("rl-1");
    job["status"] = {{"conditions", {{{"type", condition}, {"status", "True"}, {"reason", "r"}, {"message", "m"}}}}};
    world_.Put("jobs", job);
  }
  void SetPod(const std::string& phase, const Json& container, Json metadata = Json::object()) {
    if (!metadata.contains("name")) metadata["name"] = "pod";
    metadata["labels"] = {{"ridgeline.dev/job", "rl-1"}};
    world_.Put("pods", PodObject(phase, container, Json::object(), metadata));
  }
  void Say(const std::string& line) { world_.LogOf("pod")->lines.push_back(line); }
  void SayResult() {
    std::string line = FormatJobLine({std::string(kResultLine), "p", "{}"});
    line.pop_back();
    Say(line);
  }
  void EndLog() { world_.LogOf("pod")->ended = true; }

  TempDir dir_;
  ClusterWorld world_;
  Options options_ = ReadOptions({{"kubernetes", {{"image", "registry.example/ridgeline:1.0"}}}});
};

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
  EXPECT_EQ(Poll(*Open()), ended);  // as it was written down
}

TEST_F(KubernetesSession, MakesTheSecretOfAJobOfSeveralPodsAndLeavesItToTheJob) {
  options_.nodes = 2;
  Submitted();
  EXPECT_EQ(world_.Calls("POST /api/v1/namespaces/default/secrets"), 1);
  EXPECT_EQ(world_.Calls("POST /api/v1/namespaces/default/services"), 1);
  EXPECT_EQ(world_.Calls("DELETE /api/v1/namespaces/default/secrets"), 0);
  EXPECT_EQ(world_.others.at("secrets").at("metadata").at("ownerReferences").at(0).at("uid"), "uid-rl-1");
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
  EXPECT_EQ(ended.at("evidence").at("end"), "crashed");
}

// A driver that lives for one poll, again and again, would never hear of the end otherwise.
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
  SetPod("Failed", Terminated(143), kGone);
  SetPod("Running", Running(), {{"name", "replacement"}});
  EXPECT_EQ(State(*session), "running");
  EXPECT_EQ(State(*session), "running");  // a log without a result is read once more
  EXPECT_TRUE(world_.jobs.empty()) << "the end is written down, so the Job is deleted";
  world_.Take("pods", "replacement");
  const Json ended = Poll(*session);
  EXPECT_EQ(ended.at("state"), "ended");
  EXPECT_EQ(ended.at("evidence").at("end"), "preempted");
  EXPECT_EQ(ended.at("evidence").at("pod"), "pod");
}

TEST_F(KubernetesSession, GivesUpAnImageOnlyWhenItHasBeenMissingWithoutABreak) {
  const auto session = Submitted();
  const Json no_image = {{"waiting", {{"reason", "ErrImagePull"}}}};
  SetPod("Pending", no_image);
  EXPECT_THAT(Poll(*session).at("evidence").at("waits"), HasSubstr("cannot be pulled"));
  world_.clock.Later(seconds(29));
  SetPod("Pending", {{"waiting", {{"reason", "ContainerCreating"}}}});
  EXPECT_EQ(State(*session), "queued");
  SetPod("Pending", no_image);
  EXPECT_EQ(State(*session), "queued");
  world_.clock.Later(seconds(29));
  EXPECT_EQ(State(*session), "queued");
  world_.clock.Later(seconds(1));
  EXPECT_EQ(State(*session), "running") << "given up, and its pod is still there";
  world_.Take("pods", "pod");
  EXPECT_EQ(Poll(*session).at("evidence").at("end"), "invalid");
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
  EXPECT_EQ(ended.at("evidence").at("end"), "invalid");
  EXPECT_THAT(ended.at("evidence").at("hint"), HasSubstr("priority_class"));
}

TEST_F(KubernetesSession, WhoMayNotReadEventsWaitsOn) {
  const auto session = Submitted();
  world_.events_code = kForbidden;
  State(*session);
  for (int i = 0; i < 5; ++i) {
    world_.clock.Later(seconds(10));
    EXPECT_EQ(State(*session), "queued");
  }
  EXPECT_EQ(world_.Calls("/events"), 1);
}

TEST_F(KubernetesSession, AJobThatSomebodyDeletesIsCancelledWithWhatItSaid) {
  const auto session = Submitted();
  SetPod("Running", Running());
  SayResult();
  EXPECT_EQ(State(*session), "running");
  world_.Take("pods", "pod");
  world_.Take("jobs", "rl-1");
  const Json ended = Poll(*session);
  EXPECT_EQ(ended.at("evidence").at("end"), "cancelled");
  EXPECT_THAT(ended.at("evidence").at("message"), HasSubstr("somebody deleted"));
  EXPECT_EQ(ReadFile(dir_ / "jobs/rl-1/results.log"), FormatJobLine({std::string(kResultLine), "p", "{}"}));
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
  world_.Take("jobs", "rl-1");
  world_.Put("jobs", theirs);
  EXPECT_EQ(Poll(*session).at("evidence").at("end"), "cancelled");
  EXPECT_TRUE(world_.jobs.contains("rl-1"));
}

TEST_F(KubernetesSession, ACancelledJobEndsWhenItsPodHasGone) {
  const auto session = Submitted();
  SetPod("Running", Running());
  EXPECT_EQ(State(*session), "running");
  const Json one = Json::array({{{"key", "rl-1"}}});
  EXPECT_EQ(session->Cancel(one).at(0).at("cancelled"), true);
  EXPECT_EQ(session->Cancel(one).at(0).at("cancelled"), false);
  Json job = world_.jobs.at("rl-1");
  job["metadata"].update(kGone);
  world_.Put("jobs", job);
  EXPECT_EQ(State(*session), "running");
  SetPod("Failed", Terminated(130), kGone);
  const Json ended = Poll(*session);
  EXPECT_EQ(ended.at("state"), "ended");
  EXPECT_EQ(ended.at("evidence").at("end"), "cancelled");
  EXPECT_EQ(session->Cancel(one).at(0).at("cancelled"), false);
}

TEST_F(KubernetesSession, AKeyIsCreatedOnceWhoeverAsks) {
  Submitted();
  EXPECT_EQ(Open()->Submit(Json::array({Job()}))[0].at("native_id"), "uid-rl-1");
  EXPECT_EQ(world_.Calls("POST /apis/batch/v1/namespaces/default/jobs"), 1);
}

TEST_F(KubernetesSession, WhatWasRefusedIsMissingAndMayBeSubmittedAgain) {
  world_.create_code = 422;
  const auto session = Open();
  EXPECT_EQ(session->Submit(Json::array({Job()}))[0].at("error").at("kind"), "invalid_input");
  EXPECT_EQ(State(*session), "missing");
  world_.create_code = 201;
  EXPECT_EQ(session->Submit(Json::array({Job()}))[0].at("native_id"), "uid-rl-1");
}

}  // namespace
}  // namespace ridgeline::kubernetes
