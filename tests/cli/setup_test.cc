// The section `setup` of a sweep.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/cli.h"

namespace ridgeline::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class Setup : public ::testing::Test {
 protected:
  std::string Sweep(const std::string& setup) { return cli_.WriteSweep(2, "ok", "setup: " + setup + "\n").string(); }
  std::string Kept(const char* file) { return ReadFile(cli_.dir.path() / file); }

  Cli cli_;
};

TEST_F(Setup, RunsOnceBeforeTheFirstPoint) {
  const std::string sweep = Sweep("[[bash, -c, 'echo one >> kept'], [bash, -c, 'echo two >> kept']]");
  const auto first = cli_.Run({"run", sweep});
  EXPECT_TRUE(first.status.ok()) << first.err;
  EXPECT_THAT(first.out, AllOf(HasSubstr("setup 1 of 2: bash -c 'echo one >> kept'"), HasSubstr("setup 2 of 2")));
  EXPECT_EQ(Kept("kept"), "one\ntwo\n");
  EXPECT_TRUE(cli_.Run({"run", sweep, "--again"}).status.ok());
  EXPECT_EQ(Kept("kept"), "one\ntwo\n");
  // Other commands are another setup.
  EXPECT_TRUE(cli_.Run({"run", Sweep("[bash, -c, 'echo three >> kept']"), "--again"}).status.ok());
  EXPECT_EQ(Kept("kept"), "one\ntwo\nthree\n");
}

TEST_F(Setup, DoesNotRunWhereNoPointIsLeftToRun) {
  const std::string sweep = Sweep("[bash, -c, 'echo one >> kept']");
  EXPECT_TRUE(cli_.Run({"run", sweep}).status.ok());
  std::filesystem::remove_all(cli_.dir.path() / "ridgeline-out/setup");
  const auto again = cli_.Run({"run", sweep});
  EXPECT_TRUE(again.status.ok()) << again.err;
  EXPECT_THAT(again.out, Not(HasSubstr("setup")));
  EXPECT_EQ(Kept("kept"), "one\n");
}

TEST_F(Setup, IsInterruptedWithoutAPointStarted) {
  Child run = cli_.Start({"run", Sweep("[[bash, -c, 'touch begun; exec sleep 300'], [touch, never]]")});
  ASSERT_TRUE(testing::Eventually([&] { return std::filesystem::exists(cli_.dir.path() / "begun"); }));
  run.Signal(SIGINT);
  const auto said = cli_.Finish(run);
  EXPECT_EQ(said.status.exit_code, 130) << said.err;
  EXPECT_THAT(said.out, AllOf(HasSubstr("interrupted: 0 ok, 2 without a result"), HasSubstr("to continue: ")));
  EXPECT_FALSE(std::filesystem::exists(cli_.dir.path() / "never"));
  EXPECT_EQ(cli_.Count("SELECT count(*) FROM jobs"), 0);
}

TEST_F(Setup, AFailedSetupStartsNoPointAndShowsItsOutput) {
  const auto said = cli_.Run({"run", Sweep("[[bash, -c, 'echo no such wheel; exit 7'], [touch, never]]")});
  EXPECT_EQ(said.status.exit_code, 3);
  EXPECT_THAT(said.err,
              AllOf(HasSubstr("ended with exit code 7, and no point was started; it said:\n  | no such wheel"),
                    HasSubstr("all commands of setup run again")));
  EXPECT_EQ(cli_.Count("SELECT count(*) FROM results"), 0);
  EXPECT_FALSE(std::filesystem::exists(cli_.dir.path() / "never"));
  // It is tried again.
  EXPECT_EQ(cli_.Run({"run", cli_.dir.path() / "sweep.yaml"}).status.exit_code, 3);
}

TEST_F(Setup, IsShownByADryRunAndByPlanAndRendered) {
  const std::string sweep = Sweep("[[touch, 'a b']]");
  const auto dry = cli_.Run({"run", sweep, "--dry-run"});
  EXPECT_THAT(dry.out, HasSubstr("set -e\ntouch 'a b'\n")) << dry.err;
  EXPECT_THAT(cli_.Run({"plan", sweep}).err, HasSubstr("setup: 1 command before the first point"));
  const auto rendered = cli_.Run({"render", sweep, "--to", "rendered"});
  EXPECT_THAT(rendered.out, HasSubstr("first, once:  sh ")) << rendered.err;
  EXPECT_THAT(Kept("rendered/setup/setup.sh"), HasSubstr("\ntouch 'a b'\n"));
  EXPECT_FALSE(std::filesystem::exists(cli_.dir.path() / "a b"));
}

TEST_F(Setup, RefusesWhatIsNoListOfCommandsAtItsPlace) {
  EXPECT_THAT(cli_.Run({"plan", Sweep("pip install torch")}).err, HasSubstr("setup is a list of commands"));
  EXPECT_THAT(cli_.Run({"plan", Sweep("['pip install torch']")}).err, HasSubstr("each a word of its own"));
  EXPECT_THAT(cli_.Run({"plan", Sweep("[[sleep, 3]]")}).err, HasSubstr("write a number in quotes"));
  EXPECT_THAT(cli_.Run({"plan", Sweep("[[cd, x, '&&', ls]]")}).err, AllOf(HasSubstr("sweep.yaml"), HasSubstr("shell")));
  EXPECT_THAT(cli_.Run({"plan", Sweep("[]")}).err, HasSubstr("an empty one"));
}

}  // namespace
}  // namespace ridgeline::cli
