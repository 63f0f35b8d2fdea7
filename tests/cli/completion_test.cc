// The completion script, in a real bash.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "cli/commands.h"
#include "tests/cli/cli.h"

namespace ridgeline {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;

// What bash offers after these words, the last of which is being typed.
std::vector<std::string> Complete(Cli& cli, const std::vector<std::string>& words) {
  const auto script = cli.dir.path() / "completion.bash";
  if (!std::filesystem::exists(script)) WriteFileAtomic(script, cli.Run({"completion", "bash"}).out);
  // The words arrive as arguments: nothing of them is bash source.
  std::vector<std::string> argv = {
      "bash",
      "--norc",
      "-uc",
      "source \"$1\" || exit 9; cd \"$2\"; shift 2; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); "
      "[[ $1 == ridgeline-train ]] && _ridgeline_train || _ridgeline; ((${#COMPREPLY[@]})) && printf '%s\\n' "
      "\"${COMPREPLY[@]}\"; true",
      "bash",
      script,
      cli.dir.path()};
  argv.insert(argv.end(), words.begin(), words.end());
  const Captured bash = ridgeline::Run(argv);
  EXPECT_EQ(bash.status.exit_code, 0) << bash.stderr_text;
  EXPECT_EQ(bash.stderr_text, "");
  std::vector<std::string> offered;
  std::istringstream lines(bash.stdout_text);
  for (std::string line; std::getline(lines, line);) offered.push_back(line);
  return offered;
}

TEST(Completion, OffersEveryCommandAndEveryOption) {
  Cli cli;
  std::vector<std::string> names = {"--help", "--version"};
  for (const Command& command : Commands()) names.emplace_back(command.name);
  EXPECT_THAT(Complete(cli, {"ridgeline", ""}), ::testing::UnorderedElementsAreArray(names));
  EXPECT_THAT(Complete(cli, {"ridgeline", "rep"}), ::testing::ElementsAre("report"));
  EXPECT_THAT(Complete(cli, {"ridgeline", "run", "--"}),
              IsSupersetOf({"--db", "--launcher", "--retry", "--max-parallel", "--to", "--help"}));
  EXPECT_THAT(Complete(cli, {"ridgeline", "run", "--to"}), ::testing::ElementsAre("--to"));
}

TEST(Completion, KnowsWhatOptionsTake) {
  Cli cli;
  EXPECT_THAT(Complete(cli, {"ridgeline", "run", "--retry", ""}), ::testing::ElementsAre("failed"));
  EXPECT_THAT(Complete(cli, {"ridgeline", "run", "--launcher", ""}), Contains("local"));
  EXPECT_THAT(Complete(cli, {"ridgeline", "report", ""}), Contains("activation-checkpointing"));
  EXPECT_THAT(Complete(cli, {"ridgeline", "completion", ""}), ::testing::ElementsAre("bash"));
}

TEST(Completion, OffersSweepFilesAndFolders) {
  Cli cli;
  for (const char* name : {"a sweep.yaml", "b.yml", "c.txt", "$(touch pwned).yaml"}) {
    std::ofstream(cli.dir.path() / name) << "x";
  }
  std::filesystem::create_directory(cli.dir.path() / "sweeps");
  const auto offered = Complete(cli, {"ridgeline", "run", ""});
  EXPECT_THAT(offered, IsSupersetOf({"a sweep.yaml", "b.yml", "sweeps"}));
  EXPECT_THAT(offered, Not(Contains("c.txt")));
  EXPECT_FALSE(std::filesystem::exists(cli.dir.path() / "pwned"));
  EXPECT_THAT(Complete(cli, {"ridgeline", "run", "b.yml", "--to", ""}), ::testing::ElementsAre("sweeps"));
  EXPECT_THAT(Complete(cli, {"ridgeline", "run", "b.yml", "--db", "c"}), Contains("c.txt"));
}

TEST(Completion, KnowsTheTrainersFlags) {
  Cli cli;
  EXPECT_THAT(Complete(cli, {"ridgeline-train", "--"}), IsSupersetOf({"--spec", "--batch-size", "--seq-length"}));
  EXPECT_THAT(Complete(cli, {"ridgeline-train", "--model", "llama-1"}),
              IsSupersetOf({"llama-10m", "llama-124m", "llama-1b"}));
  EXPECT_THAT(Complete(cli, {"ridgeline-train", "--precision", ""}), IsSupersetOf({"fp32", "bf16", "nvfp4"}));
}

TEST(Completion, OffersNothingAfterAnUnknownCommand) {
  Cli cli;
  EXPECT_THAT(Complete(cli, {"ridgeline", "frobnicate", ""}), IsEmpty());
}

}  // namespace
}  // namespace ridgeline
