// What an API server reports besides its answers: its time, that it wants to be left alone, and how it changed a Job.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "kubernetes/manifest.h"
#include "tests/plugins/kubernetes_session.h"

namespace ridgeline::kubernetes {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

constexpr int64_t kTooManyRequests = 429;

using KubernetesServer = KubernetesSession;

// When the driver's clock was ahead, a pod that saved its state was taken for gone, and the next attempt wrote beside
// it.
TEST_F(KubernetesServer, TheTimeIsTheServersWhateverOurClockSays) {
  world_.ahead_s = -600;
  const auto session = Submitted();
  SetPod("Running", Running());
  EXPECT_EQ(State(*session), "running");
  // Deleted, due to be gone 30 s from the server's now: 1000000000 - 600 + 30.
  SetPod("Running", Running(), {{"deletionTimestamp", "2001-09-09T01:37:10Z"}, {"deletionGracePeriodSeconds", 30}});
  SetJob("Failed");
  EndLog();
  EXPECT_EQ(State(*session), "running");
  world_.clock.Later(seconds(40));
  EXPECT_EQ(State(*session), "running") << "its node may be late";
  world_.clock.Later(seconds(10));
  State(*session);
  world_.Take("pods", "pod");
  EXPECT_EQ(State(*session), "ended");
}

TEST_F(KubernetesServer, IsLeftAloneForAsLongAsRetryAfterSays) {
  const auto session = Open();
  world_.create_code = kTooManyRequests;
  world_.retry_after_s = 7;
  EXPECT_EQ(session->Submit(Json::array({Job()}))[0].at("error").at("retry"), true);
  const size_t calls = world_.calls.size();
  world_.create_code = 201;
  world_.clock.Later(seconds(6));
  EXPECT_THROW(session->Submit(Json::array({Job()})), plugin::Failure);
  EXPECT_THROW(Poll(*session), plugin::Failure);
  EXPECT_EQ(world_.calls.size(), calls);
  world_.clock.Later(seconds(1));
  EXPECT_EQ(session->Submit(Json::array({Job()}))[0].at("native_id"), "uid-rl-1");
}

TEST_F(KubernetesServer, SubmittingAgainContinuesAtTheFailedCall) {
  options_.nodes = 2;
  const auto session = Open();
  world_.others_code = kTooManyRequests;
  EXPECT_EQ(session->Submit(Json::array({Job()}))[0].at("error").at("retry"), true);
  EXPECT_EQ(world_.Calls("POST"), 4);  // the Job, a ConfigMap, a Service and a Secret
  world_.others_code = 201;
  EXPECT_EQ(session->Submit(Json::array({Job()}))[0].at("native_id"), "uid-rl-1");
  EXPECT_EQ(world_.Calls("POST"), 7) << "the Job is there, and is not asked for again";
  EXPECT_EQ(world_.Calls("GET /apis/batch/v1/namespaces/default/jobs/"), 0);
  EXPECT_EQ(session->Submit(Json::array({Job()}))[0].at("native_id"), "uid-rl-1");
  EXPECT_EQ(world_.Calls("POST"), 7);
}

// A policy may set ttlSecondsAfterFinished: 0. Then a Job is gone together with logs that nobody has read.
TEST_F(KubernetesServer, AJobThatAPolicyRemovesWhenItHasFinishedIsLost) {
  world_.policy_ttl_s = 0;
  const auto session = Submitted();
  SetPod("Running", Running());
  EXPECT_EQ(State(*session), "running");
  SetPod("Succeeded", Terminated(0, "Completed"));
  SetJob("Complete");
  world_.Take("jobs", "rl-1");
  world_.Take("pods", "pod");
  EndLog();
  const Json ended = Poll(*session);
  EXPECT_EQ(ended.at("state"), "ended");
  EXPECT_EQ(ended.at("evidence").at("reason"), "lost");
  EXPECT_THAT(ended.at("evidence").at("message"), HasSubstr("ttlSecondsAfterFinished was 0"));
}

TEST_F(KubernetesServer, ItsPolicysTimeIsKnownToADriverThatWasAway) {
  world_.policy_ttl_s = 60;
  Submitted();
  world_.clock.Later(seconds(61));
  world_.Take("jobs", "rl-1");
  const Json ended = Poll(*Open());
  EXPECT_EQ(ended.at("evidence").at("reason"), "lost");
  EXPECT_THAT(ended.at("evidence").at("hint"), HasSubstr("a policy of the cluster"));
}

TEST_F(KubernetesServer, APodsStateIsEvidence) {
  const auto session = Submitted();
  Json pod = PodObject("Succeeded", Terminated(0, "Completed"), {{"qosClass", "Burstable"}},
                       {{"name", "pod"}, {"labels", {{"ridgeline.dev/job", "rl-1"}}}});
  const Json limits = {{"cpu", "8"}, {"memory", "64Gi"}};
  pod["spec"]["containers"] = {
      {{"name", kContainer}, {"resources", {{"limits", limits}, {"requests", {{"cpu", "500m"}, {"memory", "64Gi"}}}}}}};
  pod["status"]["containerStatuses"][0]["state"]["terminated"]["finishedAt"] = "2026-01-01T00:20:05Z";
  world_.Put("pods", pod);
  SayResult();
  EndLog();
  SetJob("Complete");
  const Json evidence = Poll(*session).at("evidence");
  EXPECT_EQ(evidence.at("resources"), "cpu=8 (asks for 500m), memory=64Gi");
  EXPECT_EQ(evidence.at("qos"), "Burstable");
  EXPECT_EQ(evidence.at("ended_unix_s"), std::to_string(ParseTime("2026-01-01T00:20:05Z")));
}

// Once, 500 points had only their headlines, and no message said so.
TEST_F(KubernetesServer, ALogThatCannotBeReadIsToldWhileItsJobRunsAndWithItsHeadlines) {
  const auto session = Submitted();
  world_.log_code = 500;
  Say(R"({"message": "Get https://node:10250: i/o timeout"})");
  EndLog();
  SetPod("Running", Running());
  Json running = Poll(*session);
  EXPECT_FALSE(running.contains("evidence")) << "the next try may do";
  world_.clock.Later(seconds(1));
  running = Poll(*session);
  EXPECT_THAT(running.at("evidence").at("log_problem"), HasSubstr("i/o timeout"));
  std::string headline = FormatJobLine({std::string(kResultLine), "p", "{}"});
  SetPod("Succeeded", Terminated(0, "Completed", headline));
  SetJob("Complete");
  world_.clock.Later(seconds(1));
  State(*session);
  world_.clock.Later(seconds(10));
  const Json ended = Poll(*session);
  EXPECT_EQ(ended.at("state"), "ended");
  EXPECT_THAT(ended.at("evidence").at("log_problem"), HasSubstr("i/o timeout"));
  EXPECT_FALSE(ended.at("evidence").contains("message"));
}

// The kubelet alternates between two words for it, and every Job has another pod.
TEST_F(KubernetesServer, TellsTheCommonReasonThatJobsWait) {
  const auto session = Submitted();
  const auto waits_for = [&](const char* reason, const char* message) {
    SetPod("Pending", {{"waiting", {{"reason", reason}, {"message", message}}}});
    return Poll(*session).at("evidence").at("waits_for").get<std::string>();
  };
  const std::string first = waits_for("ErrImagePull", "rpc error: not found");
  EXPECT_EQ(waits_for("ImagePullBackOff", "Back-off pulling image \"x\""), first);
  EXPECT_NE(waits_for("CreateContainerConfigError", "secret \"s\" not found"), first);
  const auto no_node = [](const std::string& said) { return SubjectOf({"start", said, ""}, ""); };
  EXPECT_EQ(no_node("0/3 nodes are available: 3 Insufficient cpu."),
            no_node("0/4 nodes are available: 4 Insufficient cpu."));
  EXPECT_NE(no_node("0/3 nodes are available: 3 Insufficient cpu."),
            no_node("0/3 nodes are available: 3 Insufficient memory."));
}

}  // namespace
}  // namespace ridgeline::kubernetes
