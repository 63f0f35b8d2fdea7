// Gangs that a scheduler of the cluster starts as a whole, with the objects that it wants of each job.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "kubernetes/preflight.h"
#include "tests/plugins/kubernetes_session.h"

namespace ridgeline::kubernetes {
namespace {

using plugin::Failure;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

const Json kGroup = {
    {"apiVersion", "scheduling.volcano.sh/v1beta1"}, {"kind", "PodGroup"}, {"spec", {{"minMember", "{{nodes}}"}}}};

Json GangSettings(const Json& more = Json::object()) {
  Json settings = {{"image", "registry.example/ridgeline:1.0"},
                   {"gangs", "scheduled"},
                   {"objects", Json::array({kGroup})},
                   {"patch", {{"metadata", {{"annotations", {{"group", "of {{job}}"}}}}}}}};
  settings.update(more);
  return settings;
}
std::string RefusedGangs(const Json& settings) {
  try {
    ReadOptions({{"kubernetes", settings}});
    return "taken";
  } catch (const Failure& e) {
    return e.what();
  }
}

TEST(KubernetesGangsSettings, ScheduledGangsNeedNotWaitForEachOther) {
  EXPECT_EQ(Window(ReadOptions({{"nodes", 2}, {"kubernetes", {{"gangs", "scheduled"}}}})), kDefaultWindow);
  EXPECT_EQ(Window(ReadOptions({{"nodes", 2}, {"kubernetes", {{"gangs", "one_at_a_time"}}}})), 1);
  EXPECT_THAT(RefusedGangs({{"gangs", "volcano"}}), HasSubstr("scheduled or one_at_a_time"));
  EXPECT_THAT(RefusedGangs({{"objects", {{{"kind", "PodGroup"}}}}}), HasSubstr("apiVersion and kind"));
  Json named = kGroup;
  named["metadata"] = {{"name", "mine"}};
  EXPECT_THAT(RefusedGangs({{"objects", Json::array({named})}}), HasSubstr("without metadata: name"));
}

TEST(KubernetesGangsManifest, EachJobOwnsItsObjectsAndItsPodsNameThem) {
  const Json job = {{"key", "rl-1"}, {"sweep", "s"}, {"exec", {"ridgeline"}}, {"nodes", 2}};
  const Manifests made = MakeManifests(job, "", ReadOptions({{"kubernetes", GangSettings()}}), "store", "a secret");
  const Json& group = made.others.back();
  EXPECT_EQ(group.at("kind"), "PodGroup");
  EXPECT_EQ(group.at("metadata").at("name"), "rl-1");
  EXPECT_EQ(group.at("metadata").at("labels").at("ridgeline.dev/job"), "rl-1");
  EXPECT_EQ(group.at("spec").at("minMember"), 2) << "a number";
  EXPECT_EQ(made.pod.at("metadata").at("annotations").at("group"), "of rl-1");
}

TEST(KubernetesGangsGroup, SaysWhyItWaits) {
  const auto said = [](const Json& status) { return WaitOfGroup({{"status", status}}); };
  const auto condition = [](const char* type, const char* status) -> Json {
    return Json::array(
        {{{"type", type}, {"status", status}, {"reason", "NotEnoughResources"}, {"message", "2/2 tasks"}}});
  };
  EXPECT_EQ(said({{"phase", "Inqueue"}, {"conditions", condition("Unschedulable", "True")}}),
            "NotEnoughResources: 2/2 tasks");
  EXPECT_EQ(said({{"schedulingConditions", condition("UnschedulableOnNodePool", "True")}}),
            "NotEnoughResources: 2/2 tasks");
  EXPECT_EQ(said({{"phase", "Running"}, {"conditions", condition("Unschedulable", "False")}}), "");
  EXPECT_EQ(said({{"phase", "Running"}, {"conditions", condition("Unschedulable", "True")}}), "") << "it was so before";
  EXPECT_EQ(said({{"phase", "Unknown"}, {"conditions", condition("Unschedulable", "True")}}),
            "NotEnoughResources: 2/2 tasks")
      << "a part of it runs";
  EXPECT_EQ(said({{"phase", "Scheduling"}}), "its phase is Scheduling");
  EXPECT_EQ(said({{"phase", "Running"}, {"conditions", condition("Scheduled", "True")}}), "");
  EXPECT_EQ(WaitOfGroup(Json::object()), "");
}

class KubernetesGangsSession : public KubernetesSession {
 protected:
  KubernetesGangsSession() { options_ = ReadOptions({{"kubernetes", GangSettings()}}); }
};

TEST_F(KubernetesGangsSession, TheWaitIsThatOfThePodGroup) {
  const auto session = Submitted();
  EXPECT_EQ(world_.others.at("podgroups").at("metadata").at("ownerReferences").at(0).at("uid"), "uid-rl-1");
  EXPECT_EQ(world_.Calls("POST /apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"), 1);
  State(*session);
  world_.clock.Later(seconds(3));
  EXPECT_FALSE(Poll(*session).contains("evidence")) << "the scheduler has said nothing";
  world_.group = {
      {"status",
       {{"conditions",
         {{{"type", "Unschedulable"}, {"status", "True"}, {"reason", "NotEnoughResources"}, {"message", "m"}}}}}}};
  world_.clock.Later(seconds(30));
  const Json waits = Poll(*session).at("evidence");
  EXPECT_THAT(waits.at("waits"), HasSubstr("its gang is not scheduled: NotEnoughResources: m"));
  EXPECT_EQ(waits.at("waits_for"), "its gang is not scheduled: NotEnoughResources: m");
  EXPECT_EQ(world_.Calls("/podgroups/rl-1"), 2) << "not with every poll";
  SetPod("Running", Running());
  EXPECT_EQ(State(*session), "running");
}

TEST_F(KubernetesGangsSession, TheRightsAndTheObjectAreTriedFirst) {
  ScriptedCluster cluster(world_);
  const auto refused = [&]() -> std::string {
    try {
      Preflight(cluster, options_);
      return "";
    } catch (const Failure& e) {
      return std::string(e.what()) + " / " + e.hint();
    }
  };
  EXPECT_EQ(refused(), "");
  EXPECT_EQ(world_.Calls("/podgroups?dryRun=All&fieldValidation=Strict"), 1);
  world_.dry_runs["PodGroup"] = "PodGroup is invalid: spec.minMember";
  EXPECT_THAT(refused(), HasSubstr("the cluster refuses such a PodGroup: PodGroup is invalid"));
  world_.dry_runs.clear();
  world_.forbidden = {"get podgroups"};
  EXPECT_THAT(refused(), AllOf(HasSubstr("you may not get podgroups"), HasSubstr("driver-role-gangs.yaml")));
}

}  // namespace
}  // namespace ridgeline::kubernetes
