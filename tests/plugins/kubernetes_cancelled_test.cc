// Jobs in Kubernetes that were told to end, by us or by others, on an API server that a test scripts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "tests/plugins/kubernetes_session.h"

namespace ridgeline::kubernetes {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

using KubernetesCancelled = KubernetesSession;

TEST_F(KubernetesCancelled, AJobThatSomebodyDeletesIsCancelledWithWhatItSaid) {
  const auto session = Submitted();
  SetPod("Running", Running());
  SayResult();
  EXPECT_EQ(State(*session), "running");
  world_.Take("pods", "pod");
  world_.Take("jobs", "rl-1");
  EXPECT_EQ(State(*session), "running") << "more of what it said may be on its way";
  EndLog();
  const Json ended = Poll(*session);
  EXPECT_EQ(ended.at("evidence").at("end"), "cancelled");
  EXPECT_THAT(ended.at("evidence").at("message"), HasSubstr("somebody deleted"));
  EXPECT_EQ(ReadFile(dir_ / "jobs/rl-1/results.log"), FormatJobLine({std::string(kResultLine), "p", "{}"}));
}

// For example a job that began while it was withdrawn from the queue: its last words hold less than its log.
TEST_F(KubernetesCancelled, TheLogOfACancelledJobIsReadToItsEndBeforeItsLastWordsAre) {
  const auto session = Submitted();
  SetPod("Running", Running());
  EXPECT_EQ(State(*session), "running");
  session->Cancel(Json::array({{{"key", "rl-1"}}}));
  Json job = world_.jobs.at("rl-1");
  job["metadata"]["deletionTimestamp"] = "2001-09-09T01:47:00Z";
  world_.Put("jobs", job);
  const std::string last_words = FormatJobLine({std::string(kResultLine), "p", R"({"headline": 1})"});
  SetPod("Failed", Terminated(143, "Error", last_words), kDeletion);
  world_.while_awaited = [&, times = 0]() mutable {
    if (++times != 3) return;
    SayResult();
    EndLog();
  };
  EXPECT_EQ(Poll(*session).at("evidence").at("end"), "cancelled");
  EXPECT_EQ(ReadFile(dir_ / "jobs/rl-1/results.log"), FormatJobLine({std::string(kResultLine), "p", "{}"}));
}

TEST_F(KubernetesCancelled, AJobThatGoesWithItsNamespaceIsCancelledByNobody) {
  const auto session = Submitted();
  SetPod("Running", Running());
  EXPECT_EQ(State(*session), "running");
  world_.dry_runs["ConfigMap"] = "unable to create new content in namespace default because it is being terminated";
  world_.Take("pods", "pod");
  world_.Take("jobs", "rl-1");
  EndLog();
  const Json ended = Poll(*session);
  EXPECT_EQ(ended.at("evidence").at("reason"), "rights");
  EXPECT_THAT(ended.at("evidence").at("message"), HasSubstr("being terminated"));
  EXPECT_EQ(ended.at("evidence").at("node"), "n1");
}

TEST_F(KubernetesCancelled, ACancelledJobEndsWhenItsPodHasGone) {
  const auto session = Submitted();
  SetPod("Running", Running());
  EXPECT_EQ(State(*session), "running");
  const Json one = Json::array({{{"key", "rl-1"}}});
  EXPECT_EQ(session->Cancel(one).at(0).at("cancelled"), true);
  EXPECT_EQ(session->Cancel(one).at(0).at("cancelled"), false);
  Json job = world_.jobs.at("rl-1");
  job["metadata"].update(kDeletion);
  world_.Put("jobs", job);
  EXPECT_EQ(State(*session), "running");
  EndLog();
  SetPod("Failed", Terminated(130), kDeletion);
  const Json ended = Poll(*session);
  EXPECT_EQ(ended.at("state"), "ended");
  EXPECT_EQ(ended.at("evidence").at("end"), "cancelled");
  EXPECT_EQ(session->Cancel(one).at(0).at("cancelled"), false);
}

// Killed between the cluster's answer and the note of it, or before the answer.
TEST_F(KubernetesCancelled, AJobWhoseSubmitterWasKilledBeforeItNotedItIsCancelledToo) {
  const Json one = Json::array({{{"key", "rl-1"}}});
  for (const bool comes_late : {false, true}) {
    SCOPED_TRACE(comes_late);
    world_.create_unheard = true;
    EXPECT_TRUE(Open()->Submit(Json::array({Job()}))[0].contains("error"));
    const Json job = world_.jobs.at("rl-1");
    if (comes_late) world_.jobs.clear();
    const auto session = Open();
    EXPECT_EQ(session->Cancel(one).at(0).at("cancelled"), true);
    EXPECT_EQ(session->Cancel(one).at(0).at("cancelled"), false);
    EXPECT_EQ(world_.Calls("DELETE"), comes_late ? 0 : 1);
    if (comes_late) {
      EXPECT_EQ(State(*session), "queued");
      world_.Put("jobs", job);
    }
    State(*session);
    EXPECT_TRUE(world_.jobs.empty());
    EXPECT_EQ(Poll(*session).at("evidence").at("end"), "cancelled");
    std::filesystem::remove_all(dir_ / "state");
    world_.calls.clear();
  }
}

TEST_F(KubernetesCancelled, AJobThatTheClusterNeverHadIsMissingSoonAfterItIsCancelled) {
  world_.create_code = 503;
  EXPECT_TRUE(Open()->Submit(Json::array({Job()}))[0].contains("error"));
  const auto session = Open();
  EXPECT_EQ(session->Cancel(Json::array({{{"key", "rl-1"}}})).at(0).at("cancelled"), true);
  EXPECT_EQ(State(*session), "queued");
  world_.clock.Later(seconds(5));
  EXPECT_EQ(State(*session), "missing");
}

}  // namespace
}  // namespace ridgeline::kubernetes
