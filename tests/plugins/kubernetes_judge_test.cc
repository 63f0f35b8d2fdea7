// How a Job, its pods and its record are judged: every way to end, to wait and to vanish.
#include "kubernetes/judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kubernetes/manifest.h"
#include "ridgeline/job_dir.h"
#include "tests/plugins/kubernetes_objects.h"

namespace ridgeline::kubernetes {
namespace {

using plugin::Phase;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Presence = Observation::Presence;

const int64_t kNow = ParseTime("2026-01-01T01:00:00Z");
// The default settings, except for these.
Options With(int64_t ttl_s, int64_t idle_limit_s = Options().idle_limit_s) {
  Options options;
  options.ttl_s = ttl_s;
  options.idle_limit_s = idle_limit_s;
  return options;
}
const Options kOptions = With(86'400);
const seconds kIdleLimit(kOptions.idle_limit_s);

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
Observation There(const Json& job, const std::vector<Json>& pods, seconds stage_for = {}) {
  Observation seen = Seen(Presence::kThere);
  seen.job = ParseJob(job, JobKind());
  for (const Json& pod : pods) {
    PodView view = ParsePod(pod, JobKind());
    seen.pods[view.name] = std::move(view);
  }
  seen.stage = StageOf(seen.job, seen.pods, kNow);
  seen.stage_for = stage_for;
  return seen;
}
Judgement OfThere(const Json& job, const std::vector<Json>& pods, seconds stage_for = {}) {
  return Judge(Submitted(), There(job, pods, stage_for), kOptions);
}
std::string WordsOf(const Judgement& judgement) {
  const auto end = judgement.evidence.find("end");
  if (end == judgement.evidence.end()) return "";
  const auto reason = judgement.evidence.find("reason");
  EXPECT_EQ(reason != judgement.evidence.end(), end->second == "infrastructure");
  return reason == judgement.evidence.end() ? end->second : reason->second;
}

// Returns "timeout", for infrastructure the reason, "" if the results say enough, "queued", or "running".
std::string EndOf(const Json& job, const std::vector<Json>& pods) {
  const Judgement judgement = OfThere(job, pods);
  if (judgement.phase != Phase::kEnded) return ToJson(judgement).at("state").get<std::string>();
  return WordsOf(judgement);
}

Json Waiting(const std::string& reason) {
  return PodObject("Pending", {{"waiting", {{"reason", reason}, {"message", "said"}}}});
}
Json NoNode(const std::string& why, const Json& metadata = Json::object()) {
  Json pod = PodObject("Pending", nullptr,
                       {{"conditions", {{{"type", "PodScheduled"}, {"status", "False"}, {"message", why}}}}}, metadata);
  pod["spec"].erase("nodeName");
  return pod;
}
Json WithMemoryLimit(Json pod) {
  pod["spec"]["containers"] = Json::array({{{"name", "ridgeline"}, {"resources", {{"limits", {{"memory", "8Gi"}}}}}}});
  return pod;
}

// A Job of two pods.
Json GangJob(Json status = Json::object()) {
  Json job = JobObject(std::move(status));
  job["spec"] = {{"completions", 2}};
  return job;
}
Json OfRank(int rank, Json pod) {
  const std::string index = std::to_string(rank);
  pod["metadata"].update({{"name", "rl-1-" + index}, {"annotations", {{kIndexAnnotation, index}}}});
  if (pod["spec"].contains("nodeName")) pod["spec"]["nodeName"] = "n" + index;
  return pod;
}

// ---- before and after the cluster has it

TEST(KubernetesJudge, AJobNeverCreatedIsMissing) {
  EXPECT_EQ(Judge(Record(), Seen(Presence::kUnasked), kOptions).phase, Phase::kMissing);
}

TEST(KubernetesJudge, AJobTheServerHasNotShownYetWaits) {
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
  EXPECT_EQ(WordsOf(old), "lost");
  EXPECT_THAT(old.evidence.at("hint"), HasSubstr("ttl:"));
}

TEST(KubernetesJudge, AJobThatIsGoneWithItsNamespaceWasCancelledByNobody) {
  Observation gone = Seen(Presence::kGone);
  gone.no_namespace = "unable to create new content in namespace llm because it is being terminated";
  const Judgement lost = Judge(Submitted(), gone, kOptions);
  EXPECT_EQ(WordsOf(lost), "rights");
  EXPECT_THAT(lost.evidence.at("message"), HasSubstr("being terminated"));
  EXPECT_EQ(WordsOf(Judge(Cancelled(), gone, kOptions)), "cancelled");
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
      {PodObject("Failed", Terminated(137)), "lost"},
      {PodObject("Failed", Terminated(1)), "lost"},
      {PodObject("Failed", Terminated(2)), "start"},    // `ridgeline exec` refuses its arguments
      {PodObject("Failed", Terminated(3)), "storage"},  // it has no folder to work in
      {PodObject("Failed", Terminated(4)), "start"},    // no trainer can be started there
      {PodObject("Failed", Terminated(5)), "node"},     // something else is missing
      {PodObject("Failed", Terminated(127)), "start"},  // the image's shell did not find it
      {PodObject("Failed", Terminated(128, "StartError", "exec: not found")), "start"},
      {PodObject("Failed", {{"waiting", {{"reason", "PodInitializing"}}}}), "start"},
      {PodObject("Failed", Terminated(130)), ""},  // told to stop: its results say more
      {PodObject("Failed", Terminated(143), {{"reason", "DeadlineExceeded"}}), "timeout"},
      {PodObject("Failed", Terminated(137),
                 {{"reason", "Evicted"}, {"message", "The node was low on resource: memory. x"}}),
       "oom_host"},
      {WithMemoryLimit(PodObject("Failed", Terminated(137),
                                 {{"reason", "Evicted"}, {"message", "The node was low on resource: memory. x"}})),
       "preempted"},  // it used no more than it may
      {PodObject("Failed", nullptr, {{"reason", "Evicted"}, {"message", "The node was low on resource: inodes."}}),
       "preempted"},
      {PodObject("Failed", nullptr,
                 {{"reason", "Evicted"}, {"message", "The node was low on resource: ephemeral-storage."}}),
       "preempted"},
      {PodObject("Failed", nullptr,
                 {{"reason", "Evicted"}, {"message", "Usage of EmptyDir volume \"tmp\" exceeds the limit \"4Gi\". "}}),
       "storage"},
      {PodObject("Failed", nullptr,
                 {{"reason", "Evicted"},
                  {"message", "Pod ephemeral local storage usage exceeds the total limit of containers 4Gi. "}}),
       "storage"},
      {PodObject("Failed", nullptr,
                 {{"reason", "Evicted"},
                  {"message", "Container ridgeline exceeded its local ephemeral storage limit \"4Gi\". "}}),
       "storage"},
      {PodObject("Failed", Terminated(130), Disrupted("PreemptionByScheduler")), "preempted"},
      {PodObject("Failed", Terminated(143), Disrupted("EvictionByEvictionAPI")), "preempted"},
      {PodObject("Failed", Terminated(143), Disrupted("TerminationByKubelet")), "preempted"},
      {PodObject("Failed", Running(), Disrupted("DeletionByTaintManager")), "node"},
      {PodObject("Failed", nullptr, {{"reason", "OutOfcpu"}}), "node"},
      {PodObject("Failed", nullptr, {{"reason", "UnexpectedAdmissionError"}}), "node"},
      {PodObject("Failed", Terminated(143), {{"reason", "Terminated"}}), "node"},
      {PodObject("Running", Running(), Json::object(), gone), "node"},  // should have been gone half an hour ago
      {PodObject("Failed", Terminated(143), Json::object(), gone), "preempted"},
  };
  for (const auto& [pod, end] : ends) EXPECT_EQ(EndOf(FailedJob(), {pod}), end) << pod.dump();
  // The Job's controller gave up on a node that does not report, and another pod ended elsewhere.
  Json silent = PodObject("Running", Running(), {{"conditions", {{{"type", "Ready"}, {"status", "False"}}}}},
                          {{"deletionTimestamp", "2026-01-01T00:59:59Z"}});
  silent["status"]["containerStatuses"][0]["ready"] = true;
  EXPECT_EQ(EndOf(JobObject({{"conditions", {{{"type", "Complete"}, {"status", "True"}}}}}), {silent}), "node");
  EXPECT_EQ(EndOf(FailedJob("DeadlineExceeded"), {}), "start");
  EXPECT_THAT(OfThere(FailedJob("DeadlineExceeded"), {}).evidence.at("message"), HasSubstr("no pod of it could start"));
  EXPECT_EQ(EndOf(FailedJob("DeadlineExceeded"), {PodObject("Running", Running())}), "timeout");
  EXPECT_EQ(EndOf(FailedJob("DeadlineExceeded"), {Waiting("ErrImagePull")}), "start");
  EXPECT_EQ(EndOf(FailedJob(), {}), "lost");
  // The driver hears of a pod that is taken away before a controller starts another.
  EXPECT_EQ(EndOf(JobObject(), {PodObject("Failed", Terminated(130), Disrupted("PreemptionByScheduler"))}),
            "preempted");
}

// The controller deletes the pods of a Job at its deadline. Its report may come later than the pods' ends, or it may
// first see that a pod failed. A pod that was deleted before the deadline was deleted by somebody else.
TEST(KubernetesJudge, APodDeletedAtItsDeadlineRanOutOfTime) {
  const auto end = [](Json job, const char* asked) {
    job["spec"]["activeDeadlineSeconds"] = 600;
    job["status"]["startTime"] = "2026-01-01T00:00:10Z";
    const Json deleted = {{"deletionTimestamp", asked}, {"deletionGracePeriodSeconds", 30}};
    return EndOf(job, {PodObject("Failed", Terminated(130), Json::object(), deleted)});
  };
  for (const Json& job : {JobObject(), FailedJob("BackoffLimitExceeded"), FailedJob("DeadlineExceeded")}) {
    EXPECT_EQ(end(job, "2026-01-01T00:10:40Z"), "timeout") << job.dump();
  }
  for (const Json& job : {JobObject(), FailedJob("BackoffLimitExceeded")}) {
    EXPECT_EQ(end(job, "2026-01-01T00:10:39Z"), "preempted") << job.dump();
  }
}

// The exit codes of `ridgeline exec` mean the same with every launcher.
TEST(KubernetesJudge, ExecsExitCodeIsTheReason) {
  for (int code = 1; code < 130; ++code) {
    const std::string_view reason = ReasonOfExecExit(code);
    const Judgement judgement = OfThere(FailedJob(), {PodObject("Failed", Terminated(code, "Error", "no such GPU"))});
    EXPECT_EQ(WordsOf(judgement), reason.empty() ? "lost" : reason) << code;
    EXPECT_THAT(judgement.evidence.at("message"), reason.empty() ? HasSubstr("exit code") : HasSubstr("no such GPU"));
    EXPECT_THAT(judgement.evidence.at("hint"), Not(IsEmpty()));
  }
}

// A pod's deadline covers its start and its run.
TEST(KubernetesJudge, APodThatTookItsTimeLimitToStartDidNotStart) {
  const auto end = [](const char* started, const char* finished) {
    Json pod =
        PodObject("Failed", {{"terminated", {{"exitCode", 137}, {"startedAt", started}, {"finishedAt", finished}}}},
                  {{"reason", "DeadlineExceeded"}});
    pod["spec"]["activeDeadlineSeconds"] = kOptions.idle_limit_s + 600;
    return OfThere(FailedJob(), {pod});
  };
  EXPECT_EQ(WordsOf(end("2026-01-01T00:00:05Z", "2026-01-01T00:10:05Z")), "timeout");
  const Judgement late = end("2026-01-01T00:20:00Z", "2026-01-01T00:25:00Z");
  EXPECT_EQ(WordsOf(late), "start");
  EXPECT_THAT(late.evidence.at("message"), HasSubstr("of 600 s for its run 300 s were left"));
  EXPECT_EQ(EndOf(FailedJob(),
                  {PodObject("Failed", {{"waiting", {{"reason", "ErrImagePull"}}}}, {{"reason", "DeadlineExceeded"}})}),
            "start");
}

TEST(KubernetesJudge, OnlyOurContainerDecides) {
  const auto beside = [](Json pod, const Json& state) {
    pod["status"]["containerStatuses"].push_back({{"name", "istio-proxy"}, {"state", state}});
    return pod;
  };
  // The other container goes on after ours has ended.
  const Judgement done = OfThere(JobObject(), {beside(PodObject("Running", Terminated(0, "Completed")), Running())});
  EXPECT_EQ(done.phase, Phase::kEnded);
  EXPECT_EQ(WordsOf(done), "");
  EXPECT_EQ(EndOf(JobObject(), {beside(PodObject("Running", Terminated(137, "OOMKilled")), Running())}), "oom_host");
  // The other container fails after ours has done everything, and with it the pod and the Job.
  EXPECT_EQ(EndOf(FailedJob(), {beside(PodObject("Failed", Terminated(0, "Completed")), Terminated(1))}), "");
  EXPECT_EQ(EndOf(JobObject(), {beside(PodObject("Running", Running()), Terminated(1))}), "running");
}

TEST(KubernetesJudge, EveryRanksPodNodeAndEndAreEvidence) {
  const Judgement judgement = OfThere(
      GangJob(),
      {OfRank(0, PodObject("Failed", Terminated(143), Json::object(), {{"deletionTimestamp", "2026-01-01T00:30:00Z"}})),
       OfRank(1, PodObject("Failed", Terminated(137, "OOMKilled")))});
  EXPECT_EQ(judgement.evidence.at("node"), "n1 n0") << "that of the pod that decides comes first";
  EXPECT_EQ(judgement.evidence.at("pods"), "0 rl-1-0 on n0: exit code 143; 1 rl-1-1 on n1: OOMKilled, exit code 137");
  const Judgement one = OfThere(FailedJob(), {PodObject("Failed", Terminated(1))});
  EXPECT_EQ(one.evidence.at("node"), "n1");
  EXPECT_FALSE(one.evidence.contains("pods"));
}

TEST(KubernetesJudge, TheFailedPodDecides) {
  const Json deleted = {{"name", "rl-1-0"}, {"deletionTimestamp", "2026-01-01T00:30:00Z"}};
  const Json failed = {{"name", "rl-1-1"}, {"annotations", {{kIndexAnnotation, "1"}}}};
  const Judgement judgement =
      OfThere(FailedJob(), {PodObject("Failed", Terminated(143), Json::object(), deleted),
                            PodObject("Failed", Terminated(137, "OOMKilled"), Json::object(), failed)});
  EXPECT_EQ(judgement.evidence.at("end"), "oom_host");
  EXPECT_EQ(judgement.evidence.at("pod_index"), "1");
}

// After an eviction, or the end of a spot node, the Job's controller makes another pod.
TEST(KubernetesJudge, APodThatReplacedAnotherCountsInsteadOfIt) {
  Json evicted = PodObject("Failed", Terminated(143), Disrupted("TerminationByKubelet"));
  evicted["metadata"]["creationTimestamp"] = "2026-01-01T00:10:00Z";
  const auto replaced_by = [&](Json pod) {
    pod["metadata"]["name"] = "rl-1-again";
    pod["metadata"]["creationTimestamp"] = "2026-01-01T00:20:00Z";
    return std::vector<Json>{evicted, pod};
  };
  const Json complete = JobObject({{"conditions", {{{"type", "Complete"}, {"status", "True"}}}}});
  EXPECT_EQ(EndOf(complete, replaced_by(PodObject("Succeeded", Terminated(0, "Completed")))), "");
  EXPECT_EQ(EndOf(JobObject(), replaced_by(PodObject("Running", Running()))), "running");
  EXPECT_EQ(EndOf(JobObject(), replaced_by(PodObject("Pending", nullptr))), "queued");
  EXPECT_EQ(EndOf(FailedJob(), replaced_by(PodObject("Failed", Terminated(137, "OOMKilled")))), "oom_host");
  EXPECT_EQ(EndOf(JobObject(), {evicted}), "preempted") << "nothing has replaced it yet";
}

// Rank 0 saw a crash, and its pod has ended. The other pod is on its node for ever. The Job's controller says that the
// Job failed, and nobody waits until that pod should have been gone.
TEST(KubernetesJudge, OnlyTheLostNodeOfAGangFailed) {
  const Json deleted = {{"deletionTimestamp", "2026-01-01T01:00:20Z"}};
  const Json not_ready = {{"conditions", {{{"type", "Ready"}, {"status", "False"}}}}};
  Json silent = PodObject("Running", Running(), not_ready, deleted);
  silent["status"]["containerStatuses"][0]["ready"] = true;
  const std::pair<Json, const char*> lost[] = {
      {PodObject("Running", Running(), Disrupted("DeletionByTaintManager"), deleted), "went away"},
      {PodObject("Failed", Running(), Disrupted("DeletionByPodGC")), "went away"},
      {PodObject("Failed", Terminated(137), Disrupted("DeletionByTaintManager"), deleted), "went away"},
      {PodObject("Running", Running(), {{"reason", "NodeLost"}}, deleted), "went away"},
      {silent, "does not answer"},
  };
  Json failed = GangJob(FailedJob().at("status"));
  for (const auto& [pod, words] : lost) {
    SCOPED_TRACE(pod.dump());
    const Json through = OfRank(0, PodObject("Succeeded", Terminated(0, "Completed")));
    // In a bundle the first pod goes on with the next point, and the Job's controller ends it.
    const Json ended = OfRank(0, PodObject("Failed", Terminated(130), Json::object(), deleted));
    for (const Json& first : {through, ended}) {
      const Judgement judgement = OfThere(failed, {first, OfRank(1, pod)});
      EXPECT_EQ(judgement.phase, Phase::kEnded);
      EXPECT_EQ(WordsOf(judgement), "node");
      EXPECT_EQ(judgement.evidence.at("node"), "n1") << "and no fault of n0";
      EXPECT_THAT(judgement.evidence.at("message"), AllOf(HasSubstr("node n1"), HasSubstr(words)));
    }
  }
  // The node may be gone only for a moment. While nobody deletes the pod, the Job runs.
  silent["metadata"].erase("deletionTimestamp");
  EXPECT_EQ(EndOf(GangJob(), {OfRank(0, PodObject("Succeeded", Terminated(0, "Completed"))), OfRank(1, silent)}),
            "running");
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
  // No need to give up a Job that is going anyway.
  EXPECT_EQ(judge(deleting, {Waiting("ErrImagePull")}).phase, Phase::kQueued);
  // The Job was over before it was told to end, and the server has not heard of the deletion yet.
  EXPECT_EQ(judge(FailedJob(), {PodObject("Failed", Terminated(2))}).phase, Phase::kRunning);
  const Judgement ended = judge(deleting, {PodObject("Failed", Terminated(130), Json::object(), gone)});
  EXPECT_EQ(ended.phase, Phase::kEnded);
  EXPECT_EQ(ended.evidence.at("end"), "cancelled");
  EXPECT_EQ(ended.evidence.at("exit_code"), "130");
  EXPECT_TRUE(ended.awaits_logs) << "what it had done stands";
}

// ---- waits

TEST(KubernetesJudge, SaysWhatAPodWaitsFor) {
  const auto waiting = [](const std::string& reason) { return OfThere(JobObject(), {Waiting(reason)}); };
  EXPECT_FALSE(waiting("ContainerCreating").evidence.contains("waits"));
  EXPECT_THAT(waiting("ImagePullBackOff").evidence.at("waits"),
              AllOf(HasSubstr("Job rl-1: "), HasSubstr("the image cannot be pulled: ImagePullBackOff: said")));
  EXPECT_THAT(waiting("CreateContainerConfigError").evidence.at("hint"), HasSubstr("kubectl describe pod"));
}

// A registry may be away for a minute, or for ten.
TEST(KubernetesJudge, AnImageThatDoesNotComeIsWaitedFor) {
  EXPECT_EQ(OfThere(JobObject(), {Waiting("ErrImagePull")}, kIdleLimit - seconds(1)).phase, Phase::kQueued);
  const Judgement given_up = OfThere(JobObject(), {Waiting("ErrImagePull")}, kIdleLimit);
  EXPECT_EQ(given_up.phase, Phase::kEnded);
  EXPECT_EQ(WordsOf(given_up), "image");
  EXPECT_EQ(given_up.evidence.at("node"), "n1");
  EXPECT_THAT(given_up.evidence.at("message"), AllOf(HasSubstr("the image cannot be pulled"), HasSubstr("idle_limit")));
  EXPECT_THAT(given_up.evidence.at("hint"), HasSubstr("image_pull_secrets"));
  EXPECT_EQ(WordsOf(OfThere(JobObject(), {Waiting("CreateContainerConfigError")}, kIdleLimit)), "start");
  EXPECT_EQ(WordsOf(OfThere(JobObject(), {Waiting("ContainerCreating")}, kIdleLimit)), "start");
}

TEST(KubernetesJudge, ForHowLongIsASetting) {
  const auto judge = [](seconds stage_for) {
    return Judge(Submitted(), There(JobObject(), {Waiting("ErrImagePull")}, stage_for), With(86'400, 60)).phase;
  };
  EXPECT_EQ(judge(seconds(59)), Phase::kQueued);
  EXPECT_EQ(judge(seconds(60)), Phase::kEnded);
}

TEST(KubernetesJudge, AnImageThatCannotBeIsGivenUpAtOnce) {
  for (const char* reason : {"InvalidImageName", "ErrImageNeverPull"}) {
    const Judgement given_up = OfThere(JobObject(), {Waiting(reason)});
    EXPECT_EQ(given_up.phase, Phase::kEnded) << reason;
    EXPECT_EQ(WordsOf(given_up), "image");
  }
}

// Only events say this, and a pod may have several.
TEST(KubernetesJudge, AVolumeThatIsNotMountedIsOfStorage) {
  const auto judge = [](const PodEvent& event, seconds stage_for) {
    Observation seen = There(JobObject(), {Waiting("ContainerCreating")}, stage_for);
    seen.events["rl-1-x"] = event;
    return Judge(Submitted(), seen, kOptions);
  };
  const PodEvent failed = {"FailedMount", "MountVolume.SetUp failed for volume \"data\" : no such export"};
  EXPECT_THAT(judge(failed, seconds(10)).evidence.at("waits"),
              HasSubstr("a volume is not mounted: FailedMount: Mount"));
  const Judgement given_up = judge(failed, kIdleLimit);
  EXPECT_EQ(WordsOf(given_up), "storage");
  EXPECT_THAT(given_up.evidence.at("message"), HasSubstr("no such export"));
  EXPECT_FALSE(judge({"Pulling", "Pulling image \"i\""}, seconds(10)).evidence.contains("waits"));
  // Without the claim no node takes the pod.
  const Judgement no_claim = OfThere(JobObject(), {NoNode("persistentvolumeclaim \"corpus\" not found")}, seconds(10));
  EXPECT_EQ(no_claim.phase, Phase::kQueued);
  EXPECT_THAT(no_claim.evidence.at("hint"), HasSubstr("kubectl get pvc"));
}

TEST(KubernetesJudge, AContainerThatComesBeforeOursIsNamed) {
  Json pod = PodObject("Pending", {{"waiting", {{"reason", "PodInitializing"}}}});
  pod["status"]["initContainerStatuses"] = Json::array({{{"name", "mesh-init"}, {"state", Running()}}});
  const Judgement waits = OfThere(JobObject(), {pod}, seconds(10));
  EXPECT_THAT(waits.evidence.at("waits"), HasSubstr("mesh-init"));
  pod["status"]["initContainerStatuses"][0]["state"] = {{"waiting", {{"reason", "ErrImagePull"}}}};
  EXPECT_THAT(OfThere(JobObject(), {pod}, seconds(10)).evidence.at("waits"),
              AllOf(HasSubstr("cannot be pulled"), HasSubstr("mesh-init")));
  pod["status"]["phase"] = "Failed";
  pod["status"]["initContainerStatuses"][0]["state"] = Terminated(1);
  const Judgement failed = OfThere(FailedJob(), {pod});
  EXPECT_EQ(WordsOf(failed), "start");
  EXPECT_THAT(failed.evidence.at("message"), HasSubstr("mesh-init"));
}

TEST(KubernetesJudge, APodMayWaitForItsNodeUntilItsStartLimit) {
  Observation seen = There(JobObject(), {NoNode("0/3 nodes")}, seconds(100'000));
  seen.waiting_for_s = kOptions.start_limit_s - 1;
  const Judgement waits = Judge(Submitted(), seen, kOptions);
  EXPECT_EQ(waits.phase, Phase::kQueued);
  EXPECT_THAT(waits.evidence.at("waits"), HasSubstr("0/3 nodes"));
  seen.waiting_for_s = kOptions.start_limit_s;
  const Judgement given_up = Judge(Submitted(), seen, kOptions);
  EXPECT_EQ(WordsOf(given_up), "start");
  EXPECT_THAT(given_up.evidence.at("message"), AllOf(HasSubstr("0/3 nodes"), HasSubstr("start_limit")));
}

TEST(KubernetesJudge, WhetherThereIsANodeForAPodIsSaidApart) {
  const Judgement busy = OfThere(JobObject(), {NoNode("0/1 nodes are available: 1 Insufficient cpu.")});
  EXPECT_FALSE(busy.evidence.contains("no_node"));
  const Judgement none = OfThere(JobObject(), {NoNode("0/1 nodes are available: 1 node(s) were unschedulable.")});
  EXPECT_EQ(none.phase, Phase::kQueued);
  EXPECT_THAT(none.evidence.at("no_node"), HasSubstr("were unschedulable"));
  EXPECT_THAT(none.evidence.at("hint"), HasSubstr("kubectl get nodes"));
}

TEST(KubernetesJudge, HalfAGangIsWaitedForAndDoesNotRun) {
  const std::vector<Json> half = {OfRank(0, PodObject("Running", Running())), OfRank(1, NoNode("0/3 nodes"))};
  const Judgement waits = OfThere(GangJob(), half, seconds(10));
  EXPECT_EQ(waits.phase, Phase::kQueued);
  EXPECT_EQ(waits.started_unix_s, 0);
  EXPECT_THAT(waits.evidence.at("waits"), AllOf(HasSubstr("1 of 2 pods run"), HasSubstr("rl-1-1: 0/3 nodes")));
  EXPECT_THAT(waits.evidence.at("hint"), HasSubstr("Kueue"));
  const Judgement given_up = OfThere(GangJob(), half, kIdleLimit);
  EXPECT_EQ(WordsOf(given_up), "start");
  EXPECT_THAT(given_up.evidence.at("pods"), HasSubstr("1 rl-1-1 on no node"));
  EXPECT_EQ(WordsOf(OfThere(GangJob(), {OfRank(0, PodObject("Running", Running())), OfRank(1, Waiting("ErrImagePull"))},
                            kIdleLimit)),
            "image");
  EXPECT_EQ(OfThere(GangJob(), {OfRank(0, PodObject("Running", Running())), OfRank(1, PodObject("Running", Running()))})
                .phase,
            Phase::kRunning);
  // Rank 1 has ended. Rank 0, which has the results, has not.
  EXPECT_EQ(OfThere(GangJob(), {OfRank(0, PodObject("Running", Running())),
                                OfRank(1, PodObject("Succeeded", Terminated(0, "Completed")))})
                .phase,
            Phase::kRunning);
}

TEST(KubernetesJudge, ASuspendedJobWaitsHoweverLong) {
  Json suspended = JobObject();
  suspended["spec"] = {{"suspend", true}};
  Observation seen = There(suspended, {}, seconds(10'000'000));
  seen.waiting_for_s = 10'000'000;
  const Judgement waits = Judge(Submitted(), seen, kOptions);
  EXPECT_EQ(waits.phase, Phase::kQueued);
  EXPECT_THAT(waits.evidence.at("waits"), HasSubstr("it is suspended"));
  Options queued = kOptions;
  queued.queue = "team";
  EXPECT_THAT(Judge(Submitted(), seen, queued).evidence.at("hint"), HasSubstr("localqueue team"));
}

TEST(KubernetesJudge, AJobWithoutAPodIsGivenUpOnlyWhereNoWaitingHelps) {
  const auto judge = [](const std::string& refusal, seconds stage_for) {
    Observation seen = There(JobObject(), {}, stage_for);
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
  EXPECT_EQ(WordsOf(given_up), "limit");
  EXPECT_THAT(given_up.evidence.at("hint"), HasSubstr("more than the namespace's quota has in all"));
  EXPECT_EQ(WordsOf(judge("pods \"x\" is forbidden: error looking up service account a/b", seconds(10))), "rights");
  EXPECT_EQ(
      WordsOf(judge("pods \"x\" is forbidden: maximum cpu usage per Container is 1, but limit is 2", seconds(10))),
      "limit");
  EXPECT_EQ(WordsOf(judge("pods \"x\" is forbidden: violates PodSecurity \"restricted:latest\"", seconds(10))),
            "rights");
}

TEST(KubernetesPods, HowFarAJobIs) {
  const auto stage = [](const Json& job, const std::vector<Json>& pods) { return There(job, pods).stage; };
  EXPECT_EQ(stage(JobObject(), {}), Stage::kNoPod);
  EXPECT_EQ(stage(FailedJob(), {}), Stage::kOver);
  EXPECT_EQ(stage(JobObject(), {NoNode("0/3 nodes")}), Stage::kQueued);
  EXPECT_EQ(stage(JobObject(), {Waiting("ErrImagePull")}), Stage::kStarting);
  EXPECT_EQ(stage(JobObject(), {Waiting("PodInitializing")}), Stage::kStarting);
  EXPECT_EQ(stage(JobObject(), {PodObject("Running", Running())}), Stage::kRunning);
  EXPECT_EQ(stage(JobObject(), {PodObject("Succeeded", Terminated(0, "Completed"))}), Stage::kOver);
}

}  // namespace
}  // namespace ridgeline::kubernetes
