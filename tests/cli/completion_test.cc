// The completion scripts, in the real shells.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "base/text.h"
#include "cli/commands.h"
#include "tests/cli/cli.h"

namespace ridgeline::cli {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

// The words arrive as arguments, so the shell never reads them as source.
constexpr char kAskBash[] = R"(source "$1" || exit 9
shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
[[ $1 == ridgeline-train ]] && _ridgeline_train || _ridgeline
((${#COMPREPLY[@]})) && printf '%s\n' "${COMPREPLY[@]}"
true
)";

// zsh completes only in its line editor. So it gets a terminal, and a compadd that records its arguments.
constexpr char kAskZsh[] = R"(zmodload zsh/zpty
export SCRIPT=$1
shift
zpty shell zsh -f -i
zpty -w shell "source ask.inner"
repeat 1000 { [[ -e ready ]] && break; sleep 0.02; zpty -r -t shell said }
zpty -w -n shell "$*"$'\t'
repeat 1000 { [[ -e done ]] && break; sleep 0.02; zpty -r -t shell said }
zpty -d shell
cat offered
[[ -e done ]]
)";
constexpr char kInnerZsh[] = R"(PS1=
autoload -Uz compinit
compinit -u -D
source $SCRIPT
compadd() {
  if [[ ${@[1,(i)(-|--)]} != *-(O|A|D)\ * ]]; then
    local -a hits
    builtin compadd -O hits "$@"
    (($#hits)) && print -rl -- $hits >>$PWD/offered
  fi
  builtin compadd "$@"
}
finished() { : >done }
complete-and-tell() { comppostfuncs=(finished); zle complete-word }
zle -N complete-and-tell
bindkey '^I' complete-and-tell
: >offered
: >ready
)";

class Completion : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
#ifdef RIDGELINE_SANITIZED
    GTEST_SKIP() << "shells complete the same in a build without sanitizers, in a fraction of the time";
#endif
  }
  // What the shell offers after these words, of which the last is being typed: without descriptions, without the slash
  // of folders, and without the backslashes that it would insert.
  std::vector<std::string> Complete(const std::vector<std::string>& words) {
    const std::string& shell = GetParam();
    const auto here = cli_.dir.path();
    const auto script = scripts_.path() / ("completion." + shell);
    if (!std::filesystem::exists(script)) WriteFileAtomic(script, cli_.Run({"completion", shell}).out);
    for (const char* name : {"ready", "done", "offered", "out", "err"}) std::filesystem::remove(here / name);
    std::vector<std::string> argv = {"env", "-C", here, "HOME=" + scripts_.path().string()};
    if (shell == "bash") {
      argv.insert(argv.end(), {"bash", "--norc", "-uc", kAskBash, "bash", script});
      argv.insert(argv.end(), words.begin(), words.end());
    } else if (shell == "zsh") {
      WriteFile(here / "ask.inner", kInnerZsh);
      argv.insert(argv.end(), {"zsh", "-fc", kAskZsh, "zsh", script});
      argv.insert(argv.end(), words.begin(), words.end());
    } else {
      argv.insert(argv.end(), {"fish", "--no-config", "-c", "source $argv[1]; complete -C \"$argv[2..]\"", script});
      argv.insert(argv.end(), words.begin(), words.end());
    }
    const Captured asked = ridgeline::Run(argv);
    EXPECT_EQ(asked.status.exit_code, 0) << asked.stderr_text;
    EXPECT_EQ(asked.stderr_text, "");
    std::vector<std::string> offered;
    std::istringstream lines(asked.stdout_text);
    for (std::string line; std::getline(lines, line);) {
      line.resize(std::min(line.find('\t'), line.size()));
      std::erase(line, '\\');
      if (line.ends_with('/')) line.pop_back();
      offered.push_back(line);
    }
    std::sort(offered.begin(), offered.end());
    offered.erase(std::unique(offered.begin(), offered.end()), offered.end());
    return offered;
  }

  Cli cli_;
  TempDir scripts_;
};

TEST_P(Completion, OffersEveryCommandAndEveryOption) {
  std::vector<std::string> names;
  for (const Command& command : Commands()) names.emplace_back(command.name);
  EXPECT_THAT(Complete({"ridgeline", ""}), IsSupersetOf(names));
  EXPECT_THAT(Complete({"ridgeline", "rep"}), ElementsAre("report"));
  EXPECT_THAT(Complete({"ridgeline", "--v"}), ElementsAre("--version"));
  EXPECT_THAT(Complete({"ridgeline", "run", "--"}),
              IsSupersetOf({"--db", "--launcher", "--retry", "--max-parallel", "--to", "--help"}));
  EXPECT_THAT(Complete({"ridgeline", "run", "--to"}), ElementsAre("--to"));
}

TEST_P(Completion, KnowsWhatOptionsTake) {
  EXPECT_THAT(Complete({"ridgeline", "run", "--retry", ""}), ElementsAre("failed"));
  EXPECT_THAT(Complete({"ridgeline", "run", "--launcher", ""}), Contains("local"));
  EXPECT_THAT(Complete({"ridgeline", "plan", "-o", ""}), UnorderedElementsAre("text", "md", "csv", "json", "jsonl"));
  EXPECT_THAT(Complete({"ridgeline", "report", "-o", ""}), UnorderedElementsAre("md", "html", "csv", "json", "text"));
  EXPECT_THAT(Complete({"ridgeline", "report", "act"}), ElementsAre("activation-checkpointing"));
  EXPECT_THAT(Complete({"ridgeline", "trainers", "show", "nanog"}), ElementsAre("nanogpt"));
  EXPECT_THAT(Complete({"ridgeline", "devices", "p4"}), ElementsAre("p4de"));
  EXPECT_THAT(Complete({"ridgeline", "completion", ""}), UnorderedElementsAre("bash", "zsh", "fish"));
  EXPECT_THAT(Complete({"ridgeline", "help", "rep"}), ElementsAre("report"));
}

TEST_P(Completion, KnowsReleases) {
  for (const char* name : {"own@0.2", "own@main"}) {
    std::filesystem::create_directories(cli_.dir.path() / "trainers");
    WriteFile(cli_.dir.path() / "trainers" / (std::string(name) + ".yaml"), "x");
  }
  EXPECT_THAT(Complete({"ridgeline", "trainers", "show", "own"}), ElementsAre("own@0.2", "own@main"));
  if (GetParam() != "bash") {
    EXPECT_THAT(Complete({"ridgeline", "trainers", "show", "own@m"}), ElementsAre("own@main"));
    return;
  }
  // It ends a word at an '@', and replaces the part behind it.
  EXPECT_THAT(Complete({"ridgeline", "trainers", "show", "own", "@"}), ElementsAre("0.2", "main"));
  EXPECT_THAT(Complete({"ridgeline", "trainers", "show", "own", "@", "m"}), ElementsAre("main"));
  EXPECT_THAT(Complete({"ridgeline", "trainers", "try", "own", "@", "main", "--lo"}), ElementsAre("--log"));
}

TEST_P(Completion, KnowsTheCommandsOfACommand) {
  EXPECT_THAT(Complete({"ridgeline", "db", ""}),
              UnorderedElementsAre("check", "merge", "backup", "delete", "export", "prune", "vacuum"));
  EXPECT_THAT(Complete({"ridgeline", "db", "export", "-o", ""}), UnorderedElementsAre("csv", "json", "jsonl", "sql"));
  EXPECT_THAT(Complete({"ridgeline", "db", "backup", "--"}), UnorderedElementsAre("--to", "--db", "--help"));
}

TEST_P(Completion, OffersSweepFilesAndFolders) {
  for (const char* name : {"a sweep.yaml", "b.yml", "c.txt", "$(touch pwned).yaml"}) {
    std::ofstream(cli_.dir.path() / name) << "x";
  }
  std::filesystem::create_directory(cli_.dir.path() / "sweeps");
  const auto offered = Complete({"ridgeline", "run", ""});
  EXPECT_THAT(offered, IsSupersetOf({"a sweep.yaml", "b.yml", "sweeps", "$(touch pwned).yaml"}));
  EXPECT_THAT(offered, Not(Contains("c.txt")));
  EXPECT_FALSE(std::filesystem::exists(cli_.dir.path() / "pwned"));
  EXPECT_THAT(Complete({"ridgeline", "run", "b.yml", "--to", ""}), ElementsAre("sweeps"));
  EXPECT_THAT(Complete({"ridgeline", "run", "b.yml", "--db", "c"}), Contains("c.txt"));
}

TEST_P(Completion, KnowsTheTrainersFlags) {
  EXPECT_THAT(Complete({"ridgeline-train", "--"}), IsSupersetOf({"--spec", "--batch-size", "--seq-length"}));
  EXPECT_THAT(Complete({"ridgeline-train", "--model", "llama-1"}),
              IsSupersetOf({"llama-10m", "llama-124m", "llama-1b"}));
  EXPECT_THAT(Complete({"ridgeline-train", "--precision", ""}), IsSupersetOf({"fp32", "tf32", "bf16", "nvfp4"}));
}

TEST_P(Completion, OffersNothingAfterAnUnknownCommand) {
  EXPECT_THAT(Complete({"ridgeline", "frobnicate", ""}), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(EveryShell, Completion, ::testing::Values("bash", "zsh", "fish"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace ridgeline::cli
