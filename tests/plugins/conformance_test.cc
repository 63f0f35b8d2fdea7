// The conformance suite for the launchers that run anywhere.
#include "tests/plugins/conformance.h"

namespace ridgeline::testing {
namespace {

INSTANTIATE_TEST_SUITE_P(
    Launchers, Conformance,
    ::testing::Values(Candidate{"Local", "local", RIDGELINE_PLUGIN_DIR, Json::object(), 1},
                      Candidate{"Scripted", "scripted", FakePluginDir(), Json::object(), 1},
                      Candidate{"Remote", "remote", FakePluginDir(), Json::object(), 1},
                      Candidate{"ScriptedAtOnce", "scripted", FakePluginDir(), {{"script", {"ended"}}}, 1},
                      Candidate{"ScriptedStalls",
                                "scripted",
                                FakePluginDir(),
                                {{"script", {"queued", "queued", "queued", "running", "running", "running", "ended"}}},
                                1},
                      Candidate{"ScriptedRequeues",
                                "scripted",
                                FakePluginDir(),
                                {{"script", {"queued", "running", "queued", "running", "ended"}}},
                                2}),
    Label);

// A scheduler that forgets: the driver is told, and may submit again.
TEST(ScriptedLauncher, AJobThatVanishesIsMissing) {
  const TempDir state;
  const auto launcher =
      launch::LoadLauncher("scripted", {{"script", {"queued", "missing"}}}, state.path(), FakePluginDir());
  launch::LaunchJob job;
  job.key = "rl-1";
  job.exec = {"/bin/true"};
  const launch::JobRef ref{"rl-1", ""};
  launcher->Submit({&job, 1});
  EXPECT_EQ(launcher->PollMany({&ref, 1}).front().phase, launch::JobPhase::kQueued);
  EXPECT_EQ(launcher->PollMany({&ref, 1}).front().phase, launch::JobPhase::kMissing);
  EXPECT_EQ(launcher->PollMany({&ref, 1}).front().phase, launch::JobPhase::kMissing);
  launcher->Submit({&job, 1});
  EXPECT_EQ(launcher->PollMany({&ref, 1}).front().phase, launch::JobPhase::kQueued);
}

}  // namespace
}  // namespace ridgeline::testing
