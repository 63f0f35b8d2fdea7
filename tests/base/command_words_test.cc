// The meaning of a command line's words.
#include "base/command_words.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace ridgeline {
namespace {

struct Case {
  std::vector<std::string> argv;
  std::string script;
  std::string shell_text;
};

TEST(CommandWords, FindTheScriptOrTheShellsText) {
  const std::vector<Case> cases = {
      {{"python3", "train.py", "--lr", "1e-4"}, "train.py", ""},
      {{"/usr/bin/python3.11", "-u", "/opt/train.py"}, "/opt/train.py", ""},
      {{"python3", "-X", "importtime", "-W", "ignore::a.b", "train.py"}, "train.py", ""},
      {{"python3", "-Wignore", "-Bu", "train.py"}, "train.py", ""},
      {{"python3", "-m", "torch.distributed.run", "train.py"}, "", ""},
      {{"python3", "-um", "pkg.train"}, "", ""},
      {{"python3", "-c", "import x.y"}, "", ""},
      {{"python3", "-"}, "", ""},
      {{"bash", "run.sh"}, "run.sh", ""},
      {{"bash", "-eu", "-o", "pipefail", "./run.sh"}, "./run.sh", ""},
      {{"bash", "--rcfile", "/etc/x.sh", "run.sh"}, "run.sh", ""},
      {{"bash", "-c", "source e.sh && python3 t.py"}, "", "source e.sh && python3 t.py"},
      {{"bash", "-lc", "a.py"}, "", "a.py"},
      {{"bash", "-ec", "./a.sh", "zero"}, "", "./a.sh"},
      {{"/bin/sh", "-euo", "pipefail", "-c", "./a.sh"}, "", "./a.sh"},
      {{"bash", "-l", "-c", "--", "./a.sh"}, "", "./a.sh"},
      {{"bash", "-s", "a.sh"}, "", ""},
      {{"bash", "-lc"}, "", ""},
      {{"conda", "run", "-n", "env", "bash", "-lc", "python t.py"}, "", "python t.py"},
      {{"conda", "run", "-n", "env", "python", "t.py"}, "", ""},
      {{"uv", "run", "train.py"}, "", ""},
      {{"perl", "-I", "/lib/x", "a.pl"}, "", ""},
      {{"node", "a.js"}, "a.js", ""},
      {{"torchrun", "--nproc-per-node=8", "train.py"}, "", ""},
      {{"echo", "bash", "-x", "run.sh"}, "", ""},
      {{}, "", ""},
  };
  for (const Case& each : cases) {
    std::string line;
    for (const std::string& word : each.argv) line += word + ' ';
    const CommandWords words = WordsOf(each.argv);
    EXPECT_EQ(words.script ? each.argv[*words.script] : "", each.script) << line;
    EXPECT_EQ(words.shell_text ? each.argv[*words.shell_text] : "", each.shell_text) << line;
  }
}

TEST(CommandWords, AWordThatOnlyAShellKnowsIsFound) {
  const auto word = [](const std::vector<std::string>& argv) { return std::string(ShellWordOf(argv)); };
  EXPECT_EQ(word({"source", "venv/bin/activate", "&&", "python3", "t.py"}), "source");
  EXPECT_EQ(word({"python3", "t.py", "|", "tee", "log"}), "|");
  EXPECT_EQ(word({"bash", "-lc", "source e && python3 t.py > log"}), "");
  EXPECT_EQ(word({"python3", "t.py", "--text=a && b"}), "");
}

TEST(CommandWords, PlainTextHasNoMeaningToAShell) {
  EXPECT_TRUE(IsPlainShellText("/data/run-1/a_b.json,x=1.5e-4"));
  for (const char* text :
       {"a b", "$(id)", "`id`", "a;b", "a'b", "a\"b", "~", "*", "a\nb", "a\\b", "#a", "!a", "{a,b}"}) {
    EXPECT_FALSE(IsPlainShellText(text)) << text;
  }
}

}  // namespace
}  // namespace ridgeline
