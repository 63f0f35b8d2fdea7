// `ridgeline trainers`: shipped definitions, compared with logs in the trainers' own formats; and the command's use.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "base/json.h"
#include "tests/cli/cli.h"
#include "trainers/find.h"

namespace ridgeline::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
namespace fs = std::filesystem;

const fs::path& Source() {
  static const fs::path source = RIDGELINE_SOURCE_DIR;
  return source;
}

std::vector<std::string> Shipped() {
  std::vector<std::string> names;
  for (const fs::path& file : trainers::FindTrainers({Source() / "trainers"})) names.push_back(file.stem().string());
  return names;
}

// logs/NAME.json: for each log NAME.LOG.log, the values that are `found` of each metric, the `steps` of the longest
// series, and the end with its line and message, as far as they are given. Beside ok, oom, nan and crash there may be
// logs of other releases and programs, named ok… if they ended well.
class ShippedTrainer : public ::testing::TestWithParam<std::string> {
 protected:
  // Releases with the same output share files, without the release in their names.
  static fs::path LogFile(const std::string& ending) {
    const fs::path logs = Source() / "tests/trainers/logs";
    const fs::path own = logs / (GetParam() + ending);
    return fs::exists(own) ? own : logs / (GetParam().substr(0, GetParam().find('@')) + ending);
  }

  Json Try(const std::string& log) {
    const std::string file = LogFile("." + log + ".log").string();
    const auto ran = cli_.Run({"trainers", "try", GetParam(), "--log", file, "-o", "json"});
    EXPECT_EQ(ran.status.exit_code, 0) << ran.err;
    return ParseJson(ran.out, "what is printed");
  }

  Cli cli_;
};

void ExpectValue(const Json& found, const Json& expected, const std::string& name) {
  if (found.is_number() && expected.is_array()) {
    ExpectValue(Json::array({found}), expected, name);
  } else {
    EXPECT_EQ(found, expected) << name;
  }
}

TEST_P(ShippedTrainer, FindsWhatTheLogsSay) {
  const Json logs = ReadJsonFile(LogFile(".json"));
  for (const char* log : {"ok", "oom", "nan", "crash"}) ASSERT_TRUE(logs.contains(log)) << log;
  for (const auto& [log, expected] : logs.items()) {
    SCOPED_TRACE(log);
    const Json reading = Try(log);
    for (const auto& [metric, value] : expected.at("found").items()) {
      ASSERT_TRUE(reading.at("found").contains(metric)) << metric << " is not found";
      ExpectValue(reading.at("found").at(metric).at("value"), value, metric);
    }
    if (log.starts_with("ok")) {
      EXPECT_EQ(reading.at("found").size(), expected.at("found").size()) << reading.at("found");
    }
    if (expected.contains("steps")) {
      bool said = false;
      for (const Json& metric : reading.at("found"))
        said = said || metric.value("steps", Json()) == expected.at("steps");
      EXPECT_TRUE(said) << reading.at("found");
    }
    if (expected.contains("end")) {
      const Json& end = reading.at("end");
      EXPECT_EQ(end.is_null() ? Json() : end.at("end"), expected.at("end")) << end;
      for (const char* part : {"line", "message"}) {
        if (expected.contains(part)) {
          EXPECT_EQ(end.value(part, Json()), expected.at(part)) << part;
        }
      }
    }
  }
}

TEST_P(ShippedTrainer, IsRightAndSaysWhatItIs) {
  EXPECT_EQ(cli_.Run({"trainers", "check", GetParam()}).status.exit_code, 0);
  EXPECT_EQ(cli_.Run({"trainers", "show", GetParam()}).out, ReadFile(Source() / "trainers" / (GetParam() + ".yaml")));
}

INSTANTIATE_TEST_SUITE_P(All, ShippedTrainer, ::testing::ValuesIn(Shipped()), [](const auto& instance) {
  std::string name = instance.param;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '@' || c == '.'; }, '_');
  return name;
});

constexpr const char* kMine =
    "name: mine\nabout: my own\nversion: \"7\"\ntested: log\ntested_on: 2026-11-28\nresult: patterns\n"
    "metrics:\n  - {name: loss, regex: 'loss (\\S+)', take: series}\n"
    "  - {name: step_time, regex: 'took (\\S+) ms', unit: ms}\n  - {name: grad_norm, regex: 'norm (\\S+)'}\n";

class Trainers : public ::testing::Test {
 protected:
  void WriteText(const std::string& name, const std::string& text) {
    fs::create_directories((cli_.dir / name).parent_path());
    std::ofstream(cli_.dir / name) << text;
  }

  Cli cli_;
};

TEST_F(Trainers, AreListedWithThoseOfTheCurrentFolder) {
  WriteText("trainers/mine.yaml", kMine);
  WriteText("trainers/broken.yaml", "name: [");
  const auto listed = cli_.Run({"trainers"});
  EXPECT_EQ(listed.status.exit_code, 0) << listed.err;
  for (const char* part : {"mine", "my own", "nanogpt", "torchtitan", "cannot be read"}) {
    EXPECT_THAT(listed.out, HasSubstr(part));
  }
  const Json json = ParseJson(cli_.Run({"trainers", "-o", "json"}).out, "the list");
  EXPECT_THAT(json, ::testing::Contains(Json{{"trainer", "mine"},
                                             {"use", "logs"},
                                             {"tested", "log"},
                                             {"tested_on", "2026-11-28"},
                                             {"version", "7"},
                                             {"about", "my own"},
                                             {"folder", "trainers"}}));
}

TEST_F(Trainers, AFolderThatIsNamedComesFirst) {
  WriteText("trainers/mine.yaml", kMine);
  WriteText("other/mine.yaml", std::string(kMine) + "# the other\n");
  EXPECT_EQ(cli_.Run({"trainers", "show", "mine"}).out, kMine);
  EXPECT_THAT(cli_.Run({"trainers", "show", "mine", "--trainers", "other"}).out, HasSubstr("# the other"));
  EXPECT_THAT(cli_.Run({"trainers", "show", "mine", "--trainers", "trainers", "--trainers", "other"}).out,
              ::testing::Not(HasSubstr("# the other")));
  EXPECT_EQ(cli_.Run({"trainers", "--trainers", "nowhere"}).status.exit_code, 2);
}

TEST_F(Trainers, ShowNothingThatCommandsATerminal) {
  WriteText("trainers/mine.yaml", std::string(kMine) + "# \x1b[31mred\n");
  EXPECT_THAT(cli_.Run({"trainers", "show", "mine"}).out, HasSubstr("# \\x1b[31mred"));
}

TEST_F(Trainers, TryPrintsATable) {
  WriteText("trainers/mine.yaml", kMine);
  WriteText("log", "loss 2.5 took 3 ms\nx\nloss 2.25 took 1500 ms\ntook soon ms\nCUDA out of memory\n");
  const auto ran = cli_.Run({"trainers", "try", "mine", "--log", "log"});
  EXPECT_EQ(ran.status.exit_code, 0) << ran.err;
  EXPECT_EQ(ran.out,
            "metric     take    value                 lines  first_line  last_line\n"
            "loss       series  2 values, 2.5 … 2.25      2           1          3\n"
            "step_time  last    1.50 s                    2           1          3\n"
            "step_time: lines that match and have no number of its unit: 1\n"
            "not found: grad_norm\n"
            "end: oom_device, line 5: CUDA out of memory\n"
            "  use a smaller batch or sequence, or more activation checkpointing\n");
}

TEST_F(Trainers, TryTakesAnExitCodeAndTheStandardInput) {
  WriteText("trainers/mine.yaml", kMine);
  WriteText("log", "loss 2.5\n");
  EXPECT_THAT(cli_.Run({"trainers", "try", "mine", "--log", "log"}).out, HasSubstr("end: nothing says how it ended\n"));
  EXPECT_THAT(cli_.Run({"trainers", "try", "mine", "--log", "log", "--exit-code", "0"}).out, HasSubstr("end: ok\n"));
  EXPECT_THAT(cli_.Run({"trainers", "try", "mine", "--log", "log", "--exit-code", "3"}).out,
              HasSubstr("end: crashed: it ended with exit code 3\n"));
  cli_.prefix = {"sh", "-c", "printf 'loss 2.5\\nloss nan\\n' | \"$@\"", "sh"};
  const Json reading = ParseJson(cli_.Run({"trainers", "try", "mine", "--log", "-", "-o", "json"}).out, "");
  EXPECT_EQ(reading.at("found").at("loss").at("value"), Json::parse("[2.5, null]"));
  EXPECT_EQ(reading.at("end").at("end"), "diverged");
  EXPECT_EQ(reading.at("end").at("line"), 2);
  EXPECT_EQ(reading.at("missing"), Json::parse(R"(["step_time", "grad_norm"])"));
}

TEST_F(Trainers, TryReadsAResultFile) {
  WriteText("trainers/mine.yaml",
            "name: mine\nabout: a\nversion: v\ntested: log\nresult: file\nmetrics: [{name: loss, json: /loss}]\n");
  WriteText("log", "");
  WriteText("result.json", "{\"loss\": 2.5}");
  EXPECT_THAT(cli_.Run({"trainers", "try", "mine", "--log", "log", "--result", "result.json"}).out,
              HasSubstr("loss    last  2.5"));
  EXPECT_EQ(cli_.Run({"trainers", "try", "mine", "--log", "log", "--result", "none.json"}).status.exit_code, 2);
  EXPECT_THAT(cli_.Run({"trainers", "try", "nanogpt", "--log", "log", "--result", "result.json"}).err,
              HasSubstr("the metrics of nanogpt are found in its log"));
}

TEST_F(Trainers, TryHoldsTokensAgainstTheStep) {
  WriteText("trainers/mine.yaml",
            "name: mine\nabout: a\nversion: v\ntested: log\nresult: patterns\nmetrics:\n"
            "  - {name: step_time, regex: 'took (\\S+) s', unit: s}\n"
            "  - {name: tokens_per_s, regex: 'rate (\\S+)', unit: tokens/s}\n");
  WriteText("log", "took 2 s rate 1000\n");
  EXPECT_THAT(cli_.Run({"trainers", "try", "mine", "--log", "log", "--tokens-per-step", "1000"}).out,
              HasSubstr("contradiction: tokens_per_s is 1.00K"));
}

// As in a run's result: values that its definition does not read for the point are no figures.
TEST_F(Trainers, TryLeavesOutWhatIsNoFigureOfThePoint) {
  WriteText(
      "trainers/mine.yaml",
      "name: mine\nabout: a\nversion: v\ntested: log\ncommand: [x, '{{pipeline_parallel}}', '{{tied_head}}']\n"
      "result: patterns\nmetrics:\n"
      "  - {name: loss, regex: 'loss (\\S+)'}\n"
      "  - {name: parameters, regex: 'has (\\d+)', if: '{{pipeline_parallel}} == 1 or {{tied_head}} == false'}\n");
  WriteText("log", "has 124\nloss 2.5\n");
  const auto tried = [&](std::vector<std::string> fields) {
    std::vector<std::string> command = {"trainers", "try", "mine", "--log", "log"};
    for (std::string& field : fields) command.insert(command.end(), {"--field", std::move(field)});
    return cli_.Run(command).out;
  };
  EXPECT_THAT(tried({"pipeline_parallel=1"}), AllOf(HasSubstr("parameters  last"), Not(HasSubstr("note:"))));
  EXPECT_THAT(tried({"pipeline_parallel=2", "tied_head=false"}), HasSubstr("parameters  last"));
  EXPECT_THAT(tried({"pipeline_parallel=2", "tied_head=true"}),
              AllOf(Not(HasSubstr("parameters  last")), HasSubstr("loss"), HasSubstr("note: parameters is left out")));
  EXPECT_THAT(tried({"pipeline_parallel=2"}),
              AllOf(HasSubstr("parameters  last"),
                    HasSubstr("parameters counts only if pipeline_parallel == 1 or tied_head == false (say it")));
  for (const char* wrong : {"tied_head=", "pipeline_parallel=two", "no_field=1", "no_field=x"}) {
    EXPECT_EQ(cli_.Run({"trainers", "try", "mine", "--log", "log", "--field", wrong}).status.exit_code, 2) << wrong;
  }
}

// All of it except its ends is a hole, which readers see as a line.
TEST_F(Trainers, ALogOfAGigabyteIsReadInLittleMemory) {
  WriteText("trainers/mine.yaml", kMine);
  {
    std::ofstream log(cli_.dir / "log");
    log << "loss 2.5 took 3 ms\n";
    log.seekp(int64_t{1} << 30);
    log << "\nloss 2.25 took 4 ms\n";
  }
  const auto ran = cli_.Run({"trainers", "try", "mine", "--log", "log", "-o", "json"});
  EXPECT_EQ(ran.status.exit_code, 0) << ran.err;
  EXPECT_EQ(ParseJson(ran.out, "").at("found").at("loss").at("value"), Json::parse("[2.5, 2.25]"));
  EXPECT_LT(ran.status.rss_peak_bytes, int64_t{512} << 20);
}

TEST_F(Trainers, CheckSaysEveryFaultAtItsLine) {
  WriteText("trainers/mine.yaml", kMine);
  WriteText("bad.yaml", "name: bad\nabuot: x\n");
  const auto good = cli_.Run({"trainers", "check", "trainers/mine.yaml", "mine"});
  EXPECT_EQ(good.status.exit_code, 0) << good.err;
  EXPECT_EQ(good.out,
            "trainers/mine.yaml: 3 metrics, 0 ends; no command: logs alone can be read\n"
            "trainers/mine.yaml: 3 metrics, 0 ends; no command: logs alone can be read\n");
  const auto bad = cli_.Run({"trainers", "check", "mine", "bad.yaml", "nanogtp"});
  EXPECT_EQ(bad.status.exit_code, 2);
  EXPECT_THAT(bad.err, HasSubstr("bad.yaml:2:1: unknown key 'abuot', did you mean 'about'?"));
  EXPECT_THAT(bad.err, HasSubstr("there is no trainer 'nanogtp', did you mean 'nanogpt'?"));
  EXPECT_THAT(bad.err, HasSubstr("docs/trainer-definitions.md"));
}

TEST_F(Trainers, SaysWhatItCannotRead) {
  WriteText("trainers/mine.yaml", kMine);
  const auto none = cli_.Run({"trainers", "try", "mine", "--log", "none.log"});
  EXPECT_EQ(none.status.exit_code, 3);
  EXPECT_THAT(none.err, StartsWith("ridgeline: cannot open none.log"));
  EXPECT_EQ(cli_.Run({"trainers", "try", "nanogtp", "--log", "x"}).status.exit_code, 2);
  EXPECT_EQ(cli_.Run({"trainers", "try", "mine"}).status.exit_code, 2);
  EXPECT_EQ(cli_.Run({"trainers", "try", "mine", "--log", "x", "--exit-code", "256"}).status.exit_code, 2);
}

constexpr const char* kUnknownTrainer = R"(import sys, time
for step in range(1, int(sys.argv[1]) + 1):
    begin = time.monotonic()
    time.sleep(0.02)
    print(f"[{step}/{sys.argv[1]}] loss={11 - step / 10:.3f} | {1000 * (time.monotonic() - begin):,.1f} ms | 51,200 tok/s")
)";

TEST_F(Trainers, NewProposesADefinitionThatASweepUses) {
  WriteText("train.py", kUnknownTrainer);
  WriteText("train.log",
            "[1/3] loss=10.900 | 1,040.1 ms | 51,200 tok/s\n[2/3] loss=10.800 | 40.2 ms | 51,100 tok/s\n"
            "[3/3] loss=10.700 | 40.3 ms | 51,000 tok/s\n");
  const std::vector<std::string> make = {"trainers", "new",     "mine",     "--log",          "train.log",
                                         "--",       "python3", "train.py", "{{total_steps}}"};
  const auto made = cli_.Run(make);
  ASSERT_EQ(made.status.exit_code, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("step_time  series  3 values, 1.04 s … 40.3 ms"));
  EXPECT_THAT(made.out, HasSubstr("loss       series  3 values, 10.9 … 10.7"));
  EXPECT_THAT(made.out, HasSubstr("tokens_per_s: is it of all ranks or of each GPU? (--rates all, --rates gpu)"));
  EXPECT_THAT(made.out, HasSubstr("the log has no: device_peak, parameters"));
  EXPECT_THAT(made.out, HasSubstr("written: trainers/mine.yaml"));
  EXPECT_EQ(cli_.Run({"trainers", "check", "mine"}).status.exit_code, 0);
  const auto again = cli_.Run(make);
  EXPECT_EQ(again.status.exit_code, 2);
  EXPECT_THAT(again.err, HasSubstr("trainers/mine.yaml is there already, and stays as it is"));

  // What a log cannot say.
  std::string text = ReadFile(cli_.dir.path() / "trainers/mine.yaml");
  text.replace(text.find("# supports: {model: any,"), 2, "");
  WriteText("trainers/mine.yaml", text);
  WriteText("sweep.yaml",
            "name: unknown\ndefaults: {trainer: mine, model: other-model}\nmeasure: {warmup_steps: 1, steps: 3}\n");
  const auto run = cli_.Run({"run", "sweep.yaml"});
  EXPECT_EQ(run.status.exit_code, 0) << run.out << run.err;
  EXPECT_EQ(
      cli_.Count("SELECT count(*) FROM runs WHERE status = 'ok' AND step_median_ns BETWEEN 20000000 AND 400000000"), 1);
  EXPECT_EQ(cli_.Count("SELECT count(*) FROM runs WHERE device_peak_bytes IS NULL"), 1);
}

TEST_F(Trainers, TheDefinitionInItsHelpIsOne) {
  const std::string help = cli_.Run({"trainers", "new", "--help"}).out;
  const size_t begin = help.find("  name: mine\n");
  ASSERT_NE(begin, std::string::npos);
  WriteText("mine.yaml", help.substr(begin, help.find("\n\n", begin) + 1 - begin));
  const auto checked = cli_.Run({"trainers", "check", "mine.yaml"});
  EXPECT_EQ(checked.status.exit_code, 0) << checked.err;
  WriteText("train.log", "step 1 time 12.5 ms\nstep 2 time 12.1 ms\n");
  EXPECT_THAT(cli_.Run({"trainers", "try", "mine", "--trainers", ".", "--log", "train.log"}).out,
              HasSubstr("step_time  series  2 values, 12.5 ms"));
}

TEST_F(Trainers, NewSaysWhichDefinitionReadsTheLogAlready) {
  const std::string log = (Source() / "tests/trainers/logs/nanogpt.ok.log").string();
  const auto made = cli_.Run({"trainers", "new", "mine", "--log", log, "--to", "mine.yaml"});
  EXPECT_EQ(made.status.exit_code, 0) << made.err;
  EXPECT_THAT(made.out, StartsWith("nanogpt already reads the steps of this log: `ridgeline trainers try nanogpt"));
}

TEST_F(Trainers, NewWritesNothingWhereNoFigureIsCertain) {
  WriteText("train.log", "tok/s: 100\ntok/s: 101\n");
  const auto made = cli_.Run({"trainers", "new", "mine", "--log", "train.log"});
  EXPECT_EQ(made.status.exit_code, 2);
  EXPECT_THAT(made.err, HasSubstr("no line has a figure that is certain"));
  EXPECT_THAT(made.err, HasSubstr("--rates all"));
  EXPECT_FALSE(fs::exists(cli_.dir.path() / "trainers/mine.yaml"));
}

}  // namespace
}  // namespace ridgeline::cli
