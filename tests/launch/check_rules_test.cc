#include "launch/check_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/fakes/fake_launcher.h"

namespace ridgeline::launch {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Refuses a job with more nodes or cores than there are, and reports what its own mapping calls wrong.
class PickyLauncher final : public Launcher {
 public:
  explicit PickyLauncher(bool renders = true) : renders_(renders) {}
  const std::string& name() const override { return name_; }
  LauncherCapabilities can() const override { return {.render = renders_}; }
  LauncherStatus Probe() override { return {}; }
  Rendered Render(std::span<const LaunchJob> jobs) override {
    for (const LaunchJob& job : jobs) {
      rendered.push_back(job);
      const auto refuse = [](const std::string& why) { throw Error(ErrorKind::kInvalidInput, why, "ask for less"); };
      if (job.nodes > 4) refuse("so many nodes");
      if (job.nodes * job.cpus > 8) refuse("so many cores");
      if (job.config.value("picky", Json::object()).contains("wrong")) refuse("a wrong setting");
      if (job.config.value("picky", Json::object()).contains("both")) {
        refuse("launcher picky: launch: picky: both is 1\nlaunch: picky: there is no setting 'neither'");
      }
    }
    return {};
  }
  std::vector<std::optional<Error>> WhyRefused(std::span<const LaunchJob> jobs) override {
    std::vector<std::optional<Error>> refusals;
    for (const LaunchJob& job : jobs) {
      refusals.emplace_back();
      const std::string queue = job.config.value("picky", Json::object()).value("queue", "");
      if (queue == "nowhere") {
        refusals.back() =
            Error(ErrorKind::kInvalidInput, "launch: picky: queue is 'nowhere': no such queue", "see queues");
      } else if (job.nodes > 4) {
        refusals.back() = Error(ErrorKind::kInvalidInput, "too many nodes", "see queues");
      }
    }
    return refusals;
  }
  std::vector<Submission> Submit(std::span<const LaunchJob>) override { return {}; }
  std::vector<JobState> PollMany(std::span<const JobRef>) override { return {}; }
  std::vector<bool> Cancel(std::span<const JobRef>) override { return {}; }

  std::vector<LaunchJob> rendered;

 private:
  std::string name_ = "picky";
  bool renders_;
};

// Returns what is wrong with these rules for ranks 1, 2 and 16; empty: nothing.
std::string Wrong(const std::string& rules, Launcher& launcher) {
  try {
    CheckRules(
        sweep::ParseSweep("name: test\ndefaults: {model: llama-10m, batch_size: 16}\nmatrix: {ranks: [1, 2, 16]}\n"
                          "launch:\n  ranks_per_node: 4\n  rules:\n" +
                              rules,
                          "s.yaml"),
        launcher);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInvalidInput);
    EXPECT_EQ(e.hint(), "ask for less");
    return e.message();
  }
  return "";
}

TEST(CheckRules, SaysWhatIsWrongOfEachAtItsPlace) {
  PickyLauncher launcher;
  const std::string wrong = Wrong(
      "    - {when: {ranks: 1}, set: {nodes: 5}}\n"
      "    - {when: {ranks: 2}, set: {picky: {right: 1}}}\n"
      "    - {when: {ranks: 99}, set: {picky: {wrong: 1}}}\n",
      launcher);
  EXPECT_THAT(wrong, HasSubstr("s.yaml:7:7: so many nodes"));
  EXPECT_THAT(wrong, Not(HasSubstr("s.yaml:8:")));
  EXPECT_THAT(wrong, HasSubstr("s.yaml:9:7: a wrong setting")) << "though it holds of no point";
}

TEST(CheckRules, FindsWhatIsWrongOfRulesOnlyTogether) {
  PickyLauncher launcher;
  EXPECT_EQ(Wrong("    - {when: {ranks: \">1\"}, set: {nodes: 2}}\n"
                  "    - {when: {ranks: 2}, set: {cpus: 8}}\n",
                  launcher),
            "s.yaml:8:7: so many cores");
  EXPECT_THAT(Wrong("    - {when: {ranks: 16}, set: {cpus: 8}}\n", launcher), HasSubstr("s.yaml:7:7: so many cores"))
      << "with the nodes that follow from its ranks";
}

TEST(CheckRules, EachSettingThatIsRefusedHasItsPlace) {
  PickyLauncher launcher;
  EXPECT_EQ(Wrong("    - when: {ranks: 1}\n      set: {picky: {both: 1, neither: 2}}\n", launcher),
            "s.yaml:8:27: launcher picky: launch: picky: both is 1\n"
            "s.yaml:8:39: launcher picky: launch: picky: there is no setting 'neither'");
}

TEST(CheckRules, AsksNothingOfALauncherThatRendersNothing) {
  PickyLauncher launcher(false);
  EXPECT_THAT(Wrong("    - {when: {ranks: 2}, set: {nodes: 5}}\n", launcher), IsEmpty());
  EXPECT_THAT(launcher.rendered, IsEmpty());
}

std::string Refused(const std::string& launch) {
  PickyLauncher launcher;
  try {
    CheckWithScheduler(
        sweep::ParseSweep("name: test\ndefaults: {model: llama-10m}\nmatrix: {ranks: [1, 8]}\nlaunch:\n" + launch,
                          "s.yaml"),
        launcher);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInvalidInput);
    EXPECT_EQ(e.hint(), "see queues");
    return e.message();
  }
  return "";
}

TEST(CheckWithScheduler, SaysAtItsLineWhatTheSchedulerRefuses) {
  EXPECT_EQ(Refused("  picky: {queue: here}\n"), "");
  EXPECT_EQ(Refused("  picky:\n    queue: nowhere\n"), "s.yaml:6:12: launch: picky: queue is 'nowhere': no such queue");
  EXPECT_EQ(Refused("  rules:\n    - {when: {ranks: 8}, set: {picky: {queue: nowhere}}}\n"),
            "s.yaml:6:47: launch: picky: queue is 'nowhere': no such queue")
      << "of a rule's own setting";
  EXPECT_EQ(Refused("  picky: {queue: nowhere}\n  rules:\n    - {when: {ranks: 8}, set: {cpus: 2}}\n"),
            "s.yaml:5:18: launch: picky: queue is 'nowhere': no such queue")
      << "once, though points of two kinds have it";
  EXPECT_EQ(Refused("  ranks_per_node: 1\n  rules:\n    - {when: {ranks: 8}, set: {cpus: 2}}\n"),
            "s.yaml:7:7: too many nodes");
}

}  // namespace
}  // namespace ridgeline::launch
