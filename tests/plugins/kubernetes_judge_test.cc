// What a Job, its pods and its record come to: every way to end, to wait and to vanish.
#include "kubernetes/judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "kubernetes/manifest.h"
#include "kubernetes/wait.h"
#include "tests/plugins/kubernetes_objects.h"

namespace ridgeline::kubernetes {
namespace {

using plugin::Phase;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Presence = Observation::Presence;

const int64_t kNow = ParseTime("2026-01-01T01:00:00Z");
// The settings as they are where nothing is said, but for these.
Options With(int64_t ttl_s, int64_t start_timeout_s = Options().start_timeout_s) {
  Options options;
  options.ttl_s = ttl_s;
  options.start_timeout_s = start_timeout_s;
  return options;
}
const Options kOptions = With(86'400);

Record Submitted() {
  Record record;
  record.key = "rl-1";
  record.uid = "u";
  record.created_unix_s = kNow - 3600;
  return record;
}
Record Cancelled() {
  Record record = Submitted();
  record.cancelled = true;
  return record;
}

Observation Seen(Presence presence) {
  Observation seen;
  seen.presence = presence;
  seen.unix_s = kNow;
  return seen;
}
Observation There(const Json& job, const std::vector<Json>& pods, seconds stalled_for = {}) {
  Observation seen = Seen(Presence::kThere);
  seen.job = ParseJob(job);
  for (const Json& pod : pods) {
    PodView view = ParsePod(pod);
    seen.pods[view.name] = std::move(view);
  }
  seen.stall = StallOf(seen.job, seen.pods, kNow);
  seen.stalled_for = stalled_for;
  return seen;
}
Judgement OfThere(const Json& job, const std::vector<Json>& pods, seconds stalled_for = {}) {
  return Judge(Submitted(), There(job, pods, stalled_for), kOptions);
}

// "timeout", "" where the results say enough, "queued", "running".
std::string EndOf(const Json& job, const std::vector<Json>& pods) {
  const Judgement judgement = OfThere(job, pods);
  if (judgement.phase != Phase::kEnded) return ToJson(judgement).at("state").get<std::string>();
  const auto end = judgement.evidence.find("end");
  return end == judgement.evidence.end() ? "" : end->second;
}

Json Waiting(const std::string& reason) {
  return PodObject("Pending", {{"waiting", {{"reason", reason}, {"message", "said"}}}});
}

// ---- before and after the cluster has it

TEST(KubernetesJudge, WhatWasNeverCreatedIsMissing) {
  EXPECT_EQ(Judge(Record(), Seen(Presence::kUnasked), kOptions).phase, Phase::kMissing);
}

TEST(KubernetesJudge, WhatTheServerHasNotToldOfYetWaits) {
  EXPECT_EQ(Judge(Submitted(), Seen(Presence::kUnheard), kOptions).phase, Phase::kQueued);
}

TEST(KubernetesJudge, AnEndThatIsWrittenDownStays) {
  Record record = Submitted();
  record.ended = true;
  record.started_unix_s = 7;
  record.evidence = {{"end", "timeout"}};
  const Judgement judgement = Judge(record, Seen(Presence::kUnasked), kOptions);
  EXPECT_EQ(judgement.phase, Phase::kEnded);
  EXPECT_EQ(judgement.started_unix_s, 7);
  EXPECT_EQ(judgement.evidence, record.evidence);
  EXPECT_FALSE(judgement.awaits_logs);
}

TEST(KubernetesJudge, AJobThatIsGoneWasCancelledOrOutlivedItsTtl) {
  const Observation gone = Seen(Presence::kGone);
  const Judgement deleted = Judge(Submitted(), gone, kOptions);
  EXPECT_EQ(deleted.phase, Phase::kEnded);
  EXPECT_EQ(deleted.evidence.at("end"), "cancelled");
  EXPECT_THAT(deleted.evidence.at("message"), HasSubstr("somebody deleted the Job"));
  EXPECT_EQ(deleted.evidence.at("kubernetes_job"), "rl-1");
  EXPECT_FALSE(deleted.awaits_logs);
  const Judgement ours = Judge(Cancelled(), gone, kOptions);
  EXPECT_EQ(ours.evidence.at("end"), "cancelled");
  EXPECT_EQ(ours.evidence.at("message"), "the job was cancelled");
  const Judgement old = Judge(Submitted(), gone, With(3599));
  EXPECT_EQ(old.evidence.at("end"), "lost");
  EXPECT_THAT(old.evidence.at("hint"), HasSubstr("ttl:"));
}

// ---- ends

TEST(KubernetesJudge, FollowsAJob) {
  EXPECT_EQ(EndOf(JobObject(), {}), "queued");
  EXPECT_EQ(EndOf(JobObject(), {PodObject("Pending", nullptr)}), "queued");
  EXPECT_EQ(EndOf(JobObject(), {PodObject("Running", Running())}), "running");
  const Json complete = JobObject({{"conditions", {{{"type", "Complete"}, {"status", "True"}}}}});
  const Judgement judgement = OfThere(complete, {PodObject("Succeeded", Terminated(0, "Completed"))});
  EXPECT_EQ(judgement.phase, Phase::kEnded);
  EXPECT_EQ(judgement.started_unix_s, ParseTime("2026-01-01T00:00:05Z"));
  EXPECT_EQ(judgement.evidence.at("exit_code"), "0");
  EXPECT_EQ(judgement.evidence.at("image_id"), "i@sha256:1");
  EXPECT_EQ(judgement.evidence.at("queue_wait_s"), "5");
  EXPECT_FALSE(judgement.evidence.contains("end"));
}

TEST(KubernetesJudge, ClassifiesEveryEnd) {
  const Json gone = {{"deletionTimestamp", "2026-01-01T00:30:00Z"}};
  const std::pair<Json, const char*> ends[] = {
      {PodObject("Failed", Terminated(137, "OOMKilled")), "oom_host"},
      {PodObject("Failed", Terminated(137)), "crashed"},
      {PodObject("Failed", Terminated(2)), "crashed"},
      {PodObject("Failed", Terminated(128, "StartError", "exec: not found")), "invalid"},
      {PodObject("Failed", Terminated(130)), ""},  // told to stop: its results say more
      {PodObject("Failed", Terminated(143), {{"reason", "DeadlineExceeded"}}), "timeout"},
      {PodObject("Failed", Terminated(137),
                 {{"reason", "Evicted"}, {"message", "The node was low on resource: memory. x"}}),
       "oom_host"},
      {PodObject("Failed", nullptr, {{"reason", "Evicted"}, {"message", "The node was low on resource: inodes."}}),
       "preempted"},
      {PodObject("Failed", nullptr,
                 {{"reason", "Evicted"}, {"message", "The node was low on resource: ephemeral-storage."}}),
       "preempted"},
      {PodObject("Failed", nullptr,
                 {{"reason", "Evicted"}, {"message", "Usage of EmptyDir volume \"tmp\" exceeds the limit \"4Gi\". "}}),
       "crashed"},
      {PodObject("Failed", nullptr,
                 {{"reason", "Evicted"},
                  {"message", "Pod ephemeral local storage usage exceeds the total limit of containers 4Gi. "}}),
       "crashed"},
      {PodObject("Failed", nullptr,
                 {{"reason", "Evicted"},
                  {"message", "Container ridgeline exceeded its local ephemeral storage limit \"4Gi\". "}}),
       "crashed"},
      {PodObject("Failed", Terminated(130), Disrupted("PreemptionByScheduler")), "preempted"},
      {PodObject("Failed", Terminated(143), Disrupted("EvictionByEvictionAPI")), "preempted"},
      {PodObject("Failed", Terminated(143), Disrupted("TerminationByKubelet")), "preempted"},
      {PodObject("Failed", Running(), Disrupted("DeletionByTaintManager")), "node_failed"},
      {PodObject("Failed", nullptr, {{"reason", "OutOfcpu"}}), "node_failed"},
      {PodObject("Failed", nullptr, {{"reason", "UnexpectedAdmissionError"}}), "node_failed"},
      {PodObject("Failed", Terminated(143), {{"reason", "Terminated"}}), "node_failed"},
      {PodObject("Running", Running(), Json::object(), gone), "node_failed"},  // should have been gone half an hour ago
      {PodObject("Failed", Terminated(143), Json::object(), gone), "preempted"},
  };
  for (const auto& [pod, end] : ends) EXPECT_EQ(EndOf(FailedJob(), {pod}), end) << pod.dump();
  // The Job's controller gave up on a node that nobody hears of, and another pod has come to an end elsewhere.
  Json silent = PodObject("Running", Running(), {{"conditions", {{{"type", "Ready"}, {"status", "False"}}}}},
                          {{"deletionTimestamp", "2026-01-01T00:59:59Z"}});
  silent["status"]["containerStatuses"][0]["ready"] = true;
  EXPECT_EQ(EndOf(JobObject({{"conditions", {{{"type", "Complete"}, {"status", "True"}}}}}), {silent}), "node_failed");
  EXPECT_EQ(EndOf(FailedJob("DeadlineExceeded"), {}), "timeout");
  EXPECT_THAT(OfThere(FailedJob("DeadlineExceeded"), {}).evidence.at("message"), HasSubstr("no pod of it could start"));
  EXPECT_EQ(EndOf(FailedJob("DeadlineExceeded"), {PodObject("Running", Running())}), "timeout");
  EXPECT_EQ(EndOf(FailedJob(), {}), "crashed");
  // Of a pod that somebody takes away the driver hears before any controller starts another.
  EXPECT_EQ(EndOf(JobObject(), {PodObject("Failed", Terminated(130), Disrupted("PreemptionByScheduler"))}),
            "preempted");
}

TEST(KubernetesJudge, OfSeveralPodsTheOneThatFailedDecides) {
  const Json deleted = {{"name", "rl-1-0"}, {"deletionTimestamp", "2026-01-01T00:30:00Z"}};
  const Json failed = {{"name", "rl-1-1"}, {"annotations", {{kIndexAnnotation, "1"}}}};
  const Judgement judgement =
      OfThere(FailedJob(), {PodObject("Failed", Terminated(143), Json::object(), deleted),
                            PodObject("Failed", Terminated(137, "OOMKilled"), Json::object(), failed)});
  EXPECT_EQ(judgement.evidence.at("end"), "oom_host");
  EXPECT_EQ(judgement.evidence.at("pod_index"), "1");
}

TEST(KubernetesJudge, AnEndOfItsOwnWaitsForWhatThePodsHaveSaid) {
  EXPECT_TRUE(OfThere(FailedJob(), {PodObject("Failed", Terminated(2))}).awaits_logs);
  EXPECT_FALSE(OfThere(JobObject(), {Waiting("InvalidImageName")}).awaits_logs);
}

TEST(KubernetesJudge, ACancelledJobEndsWhenItsPodsHaveGone) {
  Json deleting = JobObject();
  deleting["metadata"]["deletionTimestamp"] = "2026-01-01T00:59:00Z";
  const Json gone = {{"deletionTimestamp", "2026-01-01T00:59:00Z"}};
  const auto judge = [&](const Json& job, const std::vector<Json>& pods) {
    return Judge(Cancelled(), There(job, pods, seconds(3600)), kOptions);
  };
  EXPECT_EQ(judge(deleting, {PodObject("Running", Running())}).phase, Phase::kRunning);
  EXPECT_EQ(judge(deleting, {}).phase, Phase::kQueued);
  EXPECT_EQ(judge(deleting, {Waiting("ErrImagePull")}).phase, Phase::kQueued);  // nobody gives up what goes anyway
  // It was over before it was told to end, and the server has not heard of the deletion yet.
  EXPECT_EQ(judge(FailedJob(), {PodObject("Failed", Terminated(2))}).phase, Phase::kRunning);
  const Judgement ended = judge(deleting, {PodObject("Failed", Terminated(130), Json::object(), gone)});
  EXPECT_EQ(ended.phase, Phase::kEnded);
  EXPECT_EQ(ended.evidence.at("end"), "cancelled");
  EXPECT_EQ(ended.evidence.at("exit_code"), "130");
  EXPECT_FALSE(ended.awaits_logs);
}

// ---- waits

TEST(KubernetesJudge, SaysWhatAPodWaitsFor) {
  const auto waiting = [](const std::string& reason) { return OfThere(JobObject(), {Waiting(reason)}); };
  EXPECT_FALSE(waiting("ContainerCreating").evidence.contains("waits"));
  EXPECT_THAT(waiting("ImagePullBackOff").evidence.at("waits"),
              AllOf(HasSubstr("Job rl-1: "), HasSubstr("the image cannot be pulled: ImagePullBackOff: said")));
  EXPECT_THAT(waiting("CreateContainerConfigError").evidence.at("hint"), HasSubstr("kubectl describe pod"));
}

TEST(KubernetesJudge, AnImageThatDoesNotComeIsGivenUpAfterAWhile) {
  EXPECT_EQ(OfThere(JobObject(), {Waiting("ErrImagePull")}, seconds(29)).phase, Phase::kQueued);
  const Judgement given_up = OfThere(JobObject(), {Waiting("ErrImagePull")}, seconds(30));
  EXPECT_EQ(given_up.phase, Phase::kEnded);
  EXPECT_EQ(given_up.evidence.at("end"), "invalid");
  EXPECT_THAT(given_up.evidence.at("message"), HasSubstr("the image cannot be pulled"));
  EXPECT_THAT(given_up.evidence.at("hint"), HasSubstr("image_pull_secrets"));
  EXPECT_EQ(OfThere(JobObject(), {Waiting("CreateContainerConfigError")}, seconds(30)).phase, Phase::kEnded);
}

TEST(KubernetesJudge, ForHowLongIsASetting) {
  const auto judge = [](seconds stalled_for) {
    return Judge(Submitted(), There(JobObject(), {Waiting("ErrImagePull")}, stalled_for), With(86'400, 600)).phase;
  };
  EXPECT_EQ(judge(seconds(599)), Phase::kQueued);
  EXPECT_EQ(judge(seconds(600)), Phase::kEnded);
}

TEST(KubernetesJudge, AnImageThatCannotBeIsGivenUpAtOnce) {
  for (const char* reason : {"InvalidImageName", "ErrImageNeverPull"}) {
    const Judgement given_up = OfThere(JobObject(), {Waiting(reason)});
    EXPECT_EQ(given_up.phase, Phase::kEnded) << reason;
    EXPECT_EQ(given_up.evidence.at("end"), "invalid");
  }
}

TEST(KubernetesJudge, APodMayWaitForItsNodeForever) {
  const Json pod =
      PodObject("Pending", nullptr,
                {{"conditions", {{{"type", "PodScheduled"}, {"status", "False"}, {"message", "0/3 nodes"}}}}});
  const Judgement judgement = OfThere(JobObject(), {pod}, seconds(100'000));
  EXPECT_EQ(judgement.phase, Phase::kQueued);
  EXPECT_THAT(judgement.evidence.at("waits"), HasSubstr("0/3 nodes"));
  EXPECT_EQ(There(JobObject(), {pod}).stall, Stall::kNone);
}

TEST(KubernetesJudge, AJobWithoutAPodIsGivenUpOnlyWhereNoWaitingHelps) {
  const auto judge = [](const std::string& refusal, seconds stalled_for) {
    Observation seen = There(JobObject(), {}, stalled_for);
    seen.refusal = refusal;
    return Judge(Submitted(), seen, kOptions);
  };
  const std::string quota = "pods \"x\" is forbidden: exceeded quota: q, requested: pods=1, used: ";
  EXPECT_FALSE(judge("", seconds(100'000)).evidence.contains("waits"));
  EXPECT_THAT(judge(quota + "pods=1, limited: pods=1", seconds(3)).evidence.at("waits"),
              HasSubstr("no pod can be made"));
  EXPECT_EQ(judge(quota + "pods=1, limited: pods=1", seconds(100'000)).phase, Phase::kQueued);
  EXPECT_EQ(judge(quota + "pods=0, limited: pods=0", seconds(9)).phase, Phase::kQueued);
  const Judgement given_up = judge(quota + "pods=0, limited: pods=0", seconds(10));
  EXPECT_EQ(given_up.phase, Phase::kEnded);
  EXPECT_EQ(given_up.evidence.at("end"), "invalid");
  EXPECT_THAT(given_up.evidence.at("hint"), HasSubstr("more than the namespace's quota has in all"));
}

TEST(KubernetesPods, WhatKeepsAJobFromStarting) {
  const auto stall = [](const Json& job, const std::vector<Json>& pods) { return There(job, pods).stall; };
  const Json second = {{"name", "rl-1-y"}, {"creationTimestamp", "2026-01-01T00:00:01Z"}};
  EXPECT_EQ(stall(JobObject(), {}), Stall::kNoPod);
  EXPECT_EQ(stall(FailedJob(), {}), Stall::kNone);
  EXPECT_EQ(stall(JobObject(), {Waiting("ErrImagePull")}), Stall::kContainer);
  EXPECT_EQ(stall(JobObject(), {Waiting("PodInitializing")}), Stall::kNone);
  EXPECT_EQ(stall(JobObject(), {Waiting("ErrImagePull"), PodObject("Running", Running(), Json::object(), second)}),
            Stall::kNone);  // what runs may still tell how it ended
}

TEST(KubernetesWait, KnowsAQuotaThatNoWaitingHelps) {
  const std::string text = "pods \"x\" is forbidden: exceeded quota: q, requested: ";
  EXPECT_TRUE(IsBeyondQuota(text + "limits.cpu=64, used: limits.cpu=0, limited: limits.cpu=8"));
  EXPECT_FALSE(IsBeyondQuota(text + "limits.cpu=4, used: limits.cpu=8, limited: limits.cpu=8"));
  EXPECT_TRUE(IsBeyondQuota(
      text + "pods=1,requests.memory=2Ti, used: pods=0,requests.memory=0, limited: pods=9,requests.memory=1Ti"));
  EXPECT_FALSE(IsBeyondQuota("something else"));
  EXPECT_TRUE(WaitOfRefusal(text + "pods=1, used: pods=0, limited: pods=0").patience);
  EXPECT_FALSE(WaitOfRefusal(text + "pods=1, used: pods=1, limited: pods=1").patience);
  EXPECT_TRUE(WaitOfRefusal("pods \"x\" is forbidden: no PriorityClass with name y was found").patience);
}

}  // namespace
}  // namespace ridgeline::kubernetes
