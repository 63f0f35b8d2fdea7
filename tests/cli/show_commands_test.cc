// Shows the commands before anything starts: `ridgeline plan --commands`, `ridgeline trainers show --point`.
#include "cli/show_commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "base/json.h"
#include "tests/cli/cli.h"

namespace ridgeline::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class ShownCommands : public ::testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& text) {
    WriteFile(cli_.dir.path() / name, text);
    return (cli_.dir.path() / name).string();
  }

  // A definition in the sweep's folder, of a script that reports how it was started.
  void WriteMine(const std::string& more) {
    Write("mine.sh", "cat \"$1\"; printf '[%s]\\n' \"$@\"; env; echo 'step 1: 5 ms'\n");
    Write("mine.yaml",
          fmt::format("name: mine\nabout: a script\nversion: \"1\"\ntested: log\nresult: patterns\nprocesses: one\n"
                      "metrics: [{{name: step_time, regex: 'step (?P<step>\\d+): (?P<value>\\S+) ms', unit: ms, "
                      "take: series}}]\nsupports: {{seq_length: any}}\n"
                      "command: [/bin/sh, '{}', '{{{{output_dir}}}}/a.yaml', '{{{{layers}}}}', '{{{{word}}}}']\n{}",
                      (cli_.dir.path() / "mine.sh").string(), more));
  }

  // Filled in as by a user who pastes it: values that the node knows are in a folder here.
  std::string FilledIn(const std::string& text) {
    std::filesystem::create_directories(cli_.dir.path() / "filled");
    const std::string folder = (cli_.dir.path() / "filled").string();
    return std::regex_replace(std::regex_replace(text, std::regex("<OMP_NUM_THREADS>"), "1"),
                              std::regex("<([A-Z]+)_(FILE|DIR|PORT)>"), folder + "/$1");
  }

  std::string RunInShell(const std::string& text) {
    const std::string file = Write("pasted.sh", "set -e\nmkdir -p " + FilledIn("<OUTPUT_DIR>") + "\n" + FilledIn(text));
    const Captured ran = ridgeline::Run({"bash", file});
    EXPECT_TRUE(ran.status.ok()) << ran.stderr_text << text;
    return ran.stdout_text;
  }

  Cli cli_;
};

constexpr const char* kMineSweep =
    "name: test\ndefaults: {model: llama-5m, seq_length: 32, trainer: mine}\nmeasure: {warmup_steps: 0, steps: 1}\n";
constexpr const char* kFields =
    "files: {a.yaml: \"rate: {{learning_rate}}\\nname: {{word}}\\nEND\\n\"}\n"
    "fields: {word: {type: text, default: plain}}\nenv: {ODD: \"it's {{word}}\"}\n";

TEST_F(ShownCommands, CommandsOfADefinitionCanBePasted) {
  WriteMine(kFields);
  const auto sweep = Write("sweep.yaml", std::string(kMineSweep) +
                                             "matrix: {word: [\"a 'b' $(c) \\\\ \\\"d\\\"\", \"x\\e[31m\\ny\"]}\n"
                                             "launch: {environment: {SWEEPS: \"1 2\"}}\n");
  const auto ids = ParseJson(cli_.Run({"plan", sweep, "--expand-only", "-o", "json"}).out, "points");
  for (const Json& point : ids) {
    const auto id = point.at("id").get<std::string>();
    const auto shown = cli_.Run({"plan", sweep, "--commands", "--point", id.substr(0, 8)});
    EXPECT_EQ(shown.status.exit_code, 0) << shown.err;
    EXPECT_THAT(shown.out, StartsWith(fmt::format("# point {}: word=", id.substr(0, 8))));
    EXPECT_EQ(shown.out.find('\x1b'), std::string::npos);
    const auto word = point.at("spec").at("own").at("word").get<std::string>();
    const std::string said = RunInShell(shown.out);
    EXPECT_THAT(said, HasSubstr("rate: 0.0003\nname: " + DumpJson(word) + "\nEND\n[")) << shown.out;
    EXPECT_THAT(said, HasSubstr(fmt::format("[{}]\n", word)));
    EXPECT_THAT(said, HasSubstr(fmt::format("ODD=it's {}\n", word)));
    EXPECT_THAT(said, HasSubstr("SWEEPS=1 2\n"));
    EXPECT_THAT(said, HasSubstr("PYTHONUNBUFFERED=1\n"));
    EXPECT_EQ(cli_.Run({"trainers", "show", "mine", "--point", sweep + ":" + id.substr(0, 8)}).out, shown.out);
  }
}

TEST_F(ShownCommands, SayInWhichContainerALauncherStartsThem) {
  WriteMine(kFields);
  const auto sweep = Write(
      "sweep.yaml", std::string(kMineSweep) + "launch: {launcher: slurm, slurm: {container: /images/torch.sqsh}}\n");
  EXPECT_THAT(cli_.Run({"plan", sweep, "--commands"}).out,
              HasSubstr("# Started in a container of: /images/torch.sqsh\n"));
  const Json shown = ParseJson(cli_.Run({"plan", sweep, "--commands", "-o", "json"}).out, "commands").at(0);
  EXPECT_EQ(shown.at("container"), "/images/torch.sqsh");
  EXPECT_EQ(shown.at("argv").at(0), "/bin/sh");
  const auto without = Write("without.yaml", kMineSweep);
  EXPECT_TRUE(ParseJson(cli_.Run({"plan", without, "--commands", "-o", "json"}).out, "commands")
                  .at(0)
                  .at("container")
                  .is_null());
}

TEST_F(ShownCommands, CommandsOfOurTrainerCanBePastedAndTrain) {
  const auto sweep = Write("sweep.yaml",
                           "name: test\ndefaults: {layers: 1, hidden: 32, heads: 2, ffn: 64, vocab: 64, family: llama, "
                           "seq_length: 8}\nmeasure: {warmup_steps: 0, steps: 2}\n");
  const auto shown = cli_.Run({"plan", sweep, "--commands"});
  EXPECT_EQ(shown.status.exit_code, 0) << shown.err;
  std::istringstream lines(shown.out);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_TRUE(line.size() <= 80 || line.find("ridgeline-train") != std::string::npos) << line;
  }
  RunInShell(shown.out);
  EXPECT_EQ(ReadJsonFile(FilledIn("<RESULT_FILE>")).at("status"), "ok");
}

// exec starts exactly what was shown.
TEST_F(ShownCommands, AreWhatIsStarted) {
  WriteMine(kFields);
  const auto sweep = Write(
      "sweep.yaml", std::string(kMineSweep) + "launch: {keep_logs: true, cpus: 1, environment: {SWEEPS: \"1 2\"}}\n");
  const Json shown = ParseJson(cli_.Run({"plan", sweep, "--commands", "-o", "json"}).out, "commands").at(0);
  ASSERT_EQ(cli_.Run({"run", sweep}).status.exit_code, 0);
  std::string log;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(cli_.dir.path() / "ridgeline-out")) {
    if (entry.path().filename() == "log.txt") log = ReadFile(entry.path());
  }
  for (const auto& [name, value] : shown.at("environment").items()) {
    const auto text = value.get<std::string>();
    if (text.find('<') == std::string::npos) {
      EXPECT_THAT(log, HasSubstr(fmt::format("\n{}={}\n", name, text)));
    } else {
      EXPECT_THAT(log, HasSubstr(fmt::format("\n{}=", name)));
    }
  }
  EXPECT_THAT(log, HasSubstr(fmt::format("[{}]\n[plain]\n", shown.at("argv").at(3).get<std::string>())));
  EXPECT_THAT(log, StartsWith(shown.at("files").at("<OUTPUT_DIR>/a.yaml").get<std::string>()));
  EXPECT_EQ(shown.at("unknown"), Json::parse(R"(["<MASTER_PORT>", "<OUTPUT_DIR>", "<PROGRESS_FILE>"])"));
}

TEST_F(ShownCommands, APointIsNamedByItsIdsBeginning) {
  const auto sweep = cli_.WriteSweep(20, "ok").string();
  const auto none = cli_.Run({"plan", sweep, "--commands", "--point", "xyz"});
  EXPECT_EQ(none.status.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("--point xyz: the sweep has no point whose id begins so"));
  std::string twice;
  std::set<char> seen;
  for (const Json& point : ParseJson(cli_.Run({"plan", sweep, "--expand-only", "-o", "json"}).out, "points")) {
    const auto id = point.at("id").get<std::string>();
    if (!seen.insert(id.front()).second) twice = id.front();
  }
  EXPECT_THAT(cli_.Run({"plan", sweep, "--commands", "--point", twice}).err, HasSubstr("points begin so: "));
  EXPECT_EQ(cli_.Run({"plan", sweep, "--point", "x"}).status.exit_code, 2) << "it goes with --commands";
  const std::string id = ParseJson(cli_.Run({"plan", sweep, "--expand-only", "-o", "json"}).out, "").at(0).at("id");
  const auto other = cli_.Run({"trainers", "show", "nanogpt", "--point", sweep + ":" + id});
  EXPECT_EQ(other.status.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("the point's trainer is ridgeline, not nanogpt"));
  EXPECT_EQ(cli_.Run({"trainers", "show", "ridgeline", "--point", sweep + ":" + id}).status.exit_code, 0);
  EXPECT_THAT(cli_.Run({"trainers", "show", "nanogpt", "--point", sweep}).err, HasSubstr("--point is SWEEP.yaml:ID"));
}

TEST_F(ShownCommands, TextShowsSomeOfManyPointsAndJsonLinesShowAll) {
  const auto sweep = cli_.WriteSweep(300, "ok").string();
  const auto text = cli_.Run({"plan", sweep, "--commands"});
  EXPECT_EQ(text.status.exit_code, 0);
  EXPECT_THAT(text.err, HasSubstr("200 more points are not shown: name one as --point ID"));
  const auto lines = cli_.Run({"plan", sweep, "--commands", "-o", "jsonl"});
  EXPECT_EQ(std::count(lines.out.begin(), lines.out.end(), '\n'), 300);
  EXPECT_THAT(lines.err, Not(HasSubstr("not shown")));
}

TEST_F(ShownCommands, RefuseOptionsThatDoNotGoWithThem) {
  const auto sweep = cli_.WriteSweep(1, "ok").string();
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"-o", "csv"}, {"--expand-only"}, {"--largest", "batch_size"}}) {
    std::vector<std::string> arguments = {"plan", sweep, "--commands"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    EXPECT_EQ(cli_.Run(arguments).status.exit_code, 2) << more.front();
  }
}

}  // namespace
}  // namespace ridgeline::cli
