// `ridgeline gate`: the names of nights, its output, and its exit codes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include <fmt/format.h>

#include "base/json.h"
#include "regress/nights.h"
#include "tests/cli/cli.h"
#include "tests/regress/nights.h"

namespace ridgeline::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class GateProgram : public ::testing::Test {
 protected:
  // Seven nights, and `tonight`, whose steps take this long.
  void MeasureNights(double tonight_ms) {
    store::Store store = store::Store::Open(cli_.dir.path() / "ridgeline.db", store::Store::Mode::kReadWrite);
    testing::Nights nights(store);
    nights.AddSeveral(7);
    nights.Add("tonight", tonight_ms);
  }

  Cli cli_;
};

TEST_F(GateProgram, PassesANightLikeTheOthers) {
  MeasureNights(100);
  const auto shown = cli_.Run({"gate", "tonight"});
  EXPECT_EQ(shown.status.exit_code, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("PASS: 4 pass; of what passes, a slowdown of"));
  EXPECT_EQ(cli_.Run({"gate", "tonight", "--baseline", "night-*", "--pinned", "night-1"}).status.exit_code, 0);
  EXPECT_THAT(cli_.Run({"gate", "tonight", "--pinned", "night-1"}).out, HasSubstr("step time since pinned"));
  const auto blind = cli_.Run({"gate", "tonight", "--detect", "0.5"});
  EXPECT_EQ(blind.status.exit_code, 4);
  EXPECT_THAT(blind.out, HasSubstr("runs differ too much to see 0.5 %"));
}

TEST_F(GateProgram, PassesNoNightThatWouldNotSeeADoubling) {
  {
    store::Store store = store::Store::Open(cli_.dir.path() / "ridgeline.db", store::Store::Mode::kReadWrite);
    testing::Nights nights(store);
    int night = 0;
    for (const double ms : {144, 83, 206, 100, 172, 70, 120}) nights.Add(fmt::format("night-{}", ++night), ms);
    nights.Add("tonight", 120);
  }
  const auto shown = cli_.Run({"gate", "tonight"});
  EXPECT_EQ(shown.status.exit_code, 4) << shown.out;
  EXPECT_THAT(shown.out, HasSubstr("runs differ too much to see 100.0 %"));
  EXPECT_EQ(cli_.Run({"gate", "tonight", "--detect", "1000"}).status.exit_code, 0);
}

TEST_F(GateProgram, EndsInconclusiveWithASuspect) {
  MeasureNights(110);
  const auto shown = cli_.Run({"gate", "tonight", "--annotations"});
  EXPECT_EQ(shown.status.exit_code, 4) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("INCONCLUSIVE: 2 inconclusive, 2 pass"));
  EXPECT_THAT(shown.out, HasSubstr("\n::warning title=INCONCLUSIVE"));
}

TEST_F(GateProgram, WritesEveryForm) {
  MeasureNights(110);
  const auto shown = cli_.Run({"gate", "tonight", "--baseline", "night-*", "--junit", "gate.xml", "--summary",
                               "summary.md", "--comment", "comment.md", "--metrics", "metrics.txt", "--to", "gate.json",
                               "--annotations=annotations.txt"});
  EXPECT_EQ(shown.status.exit_code, 4) << shown.err;
  EXPECT_THAT(shown.out, StartsWith("gate.json: INCONCLUSIVE"));
  EXPECT_THAT(shown.out, Not(HasSubstr("::warning")));
  const auto text = [&](const char* name) { return ReadFile(cli_.dir.path() / name); };
  EXPECT_EQ(ParseJson(text("gate.json"), "the gate").at("baseline"), "night-*");
  EXPECT_THAT(text("gate.xml"), HasSubstr("<testsuite name=\"ridgeline gate\" tests=\"4\""));
  EXPECT_THAT(text("summary.md"), StartsWith("### Ridgeline gate: INCONCLUSIVE"));
  EXPECT_EQ(text("summary.md"), text("comment.md"));
  EXPECT_THAT(text("annotations.txt"), StartsWith("::warning title=INCONCLUSIVE"));
  EXPECT_THAT(text("metrics.txt"), HasSubstr("answer=\"inconclusive\"} 2\n"));
}

TEST_F(GateProgram, TakesBaselinesOfOtherDatabases) {
  MeasureNights(100);
  std::filesystem::copy_file(cli_.dir.path() / "ridgeline.db", cli_.dir.path() / "other.db");
  for (const char* baseline : {"other.db", "other.db:night-*"}) {
    const auto shown = cli_.Run({"gate", "tonight", "--baseline", baseline});
    EXPECT_EQ(shown.status.exit_code, 0) << shown.err << shown.out;
  }
  const auto one = cli_.Run({"gate", "other.db:tonight", "--baseline", "night-7"});
  EXPECT_EQ(one.status.exit_code, 4) << "a night has three runs";
  EXPECT_THAT(one.out, HasSubstr("3 runs of the 20"));
}

TEST_F(GateProgram, LaterRunsAreNoHistory) {
  MeasureNights(100);
  EXPECT_THAT(cli_.Run({"gate", "night-2"}).out, HasSubstr("3 runs of the 20"));
}

TEST_F(GateProgram, RefusesWhatNamesNothing) {
  MeasureNights(100);
  EXPECT_EQ(cli_.Run({"gate"}).status.exit_code, 2);
  EXPECT_THAT(cli_.Run({"gate"}).err, HasSubstr("which campaign"));
  const auto unknown = cli_.Run({"gate", "tonigh"});
  EXPECT_EQ(unknown.status.exit_code, 2);
  EXPECT_THAT(unknown.err,
              HasSubstr("gate: 'tonigh' is neither a campaign of ridgeline.db nor a database, did you mean "
                        "'tonight'?"));
  EXPECT_EQ(cli_.Run({"gate", "tonight", "--baseline", "week-*"}).status.exit_code, 2);
  EXPECT_THAT(cli_.Run({"gate", "tonight", "--baseline", "tonight"}).err, HasSubstr("are the same"));
  EXPECT_THAT(cli_.Run({"gate", "ridgeline.db"}).err, HasSubstr("not a night or a commit"));
  EXPECT_THAT(cli_.Run({"gate", "night-*"}).err, HasSubstr("is neither a campaign")) << "head is one";
}

TEST_F(GateProgram, ANightThatMeasuredNothingIsInfrastructures) {
  {
    store::Store store = store::Store::Open(cli_.dir.path() / "ridgeline.db", store::Store::Mode::kReadWrite);
    testing::Nights nights(store);
    nights.AddSeveral(7);
    nights.Add("tonight", [](const Point& point) { return samples::Result(point.id, InfrastructureReason::kNode); });
  }
  const auto shown = cli_.Run({"gate", "tonight", "--junit", "gate.xml"});
  EXPECT_EQ(shown.status.exit_code, 3);
  EXPECT_THAT(shown.out, HasSubstr("its node failed"));
  EXPECT_THAT(ReadFile(cli_.dir.path() / "gate.xml"), Not(HasSubstr("errors=\"0\"")));
}

// Otherwise a persistent slowdown would become normal once half of the baseline's runs have it.
TEST_F(GateProgram, ARegressionStaysOneUntilItIsAccepted) {
  store::Store store = store::Store::Open(cli_.dir.path() / "ridgeline.db", store::Store::Mode::kReadWrite);
  testing::Nights nights(store);
  int count = 0;
  const auto gate = [&](double ms) {
    regress::Night night;
    night.name = fmt::format("night-{}", ++count);
    nights.Add(night.name, ms);
    night.started_unix_s = count;
    regress::WriteNight(night, cli_.dir / "nights");
    const std::string json = cli_.dir / "nights" / night.name / "gate.json";
    const auto shown = cli_.Run({"gate", night.name, "--baseline", "night-*", "--records", "nights", "--to", json});
    night.ended_unix_s = count;
    night.exit_code = shown.status.exit_code;
    night.worse = regress::WorseCells(ReadJsonFile(json));
    regress::WriteNight(night, cli_.dir / "nights");
    return night.exit_code;
  };
  for (int i = 0; i < 7; ++i) EXPECT_EQ(gate(100), 4) << "too few runs";
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(gate(106), i < 4 ? 4 : 1) << i << " nights later: a suspect, until the nights decide together";
  }
  const auto accept = [&](const std::string& night, const std::vector<std::string>& more) {
    std::vector<std::string> words = {"nightly", "accept", night, "--dir", "."};
    words.insert(words.end(), more.begin(), more.end());
    return cli_.Run(words);
  };
  EXPECT_EQ(accept("night-16", {"--all", "--reason", "x"}).status.exit_code, 2);
  EXPECT_THAT(accept("night-7", {"--all", "--reason", "x"}).err, HasSubstr("found nothing worse"));
  EXPECT_THAT(accept("night-15", {"--reason", "x"}).err, HasSubstr("--point NAME"));
  EXPECT_THAT(accept("night-15", {"--all"}).err, HasSubstr("--reason"));
  EXPECT_THAT(accept("night-15", {"--all", "--reason", "a\nb"}).err, HasSubstr("--reason takes one line"));
  EXPECT_THAT(accept("night-15", {"--point", "seed=3", "--reason", "x"}).err, HasSubstr("did you mean"));
  const auto one = accept("night-15", {"--point", "seed=1", "--reason", "NaN checks", "--author", "Ada L."});
  EXPECT_THAT(one.out, HasSubstr("night-15: 1 point is accepted by Ada L.")) << one.err;
  EXPECT_EQ(gate(106), 1) << "the other is not accepted";
  const Json findings = ReadJsonFile(cli_.dir / "nights/night-16/gate.json").at("findings");
  const auto found = std::ranges::find_if(findings, [](const Json& finding) {
    return finding.at("point") == "seed=1" && finding.at("metric") == "step time";
  });
  ASSERT_NE(found, findings.end());
  EXPECT_EQ(found->at("answer"), "PASS");
  EXPECT_EQ(found->at("accepted").at(0).at("author"), "Ada L.");
  EXPECT_EQ(found->at("accepted").at(0).at("night"), "night-15");
  EXPECT_THAT(found->at("words").get<std::string>(), HasSubstr("accepted of night-15 by Ada L.: NaN checks"));
  const auto accepted = accept("night-15", {"--all", "--reason", "NaN checks", "--author", "Ada L."});
  EXPECT_THAT(accepted.out, HasSubstr("night-15: 2 points are accepted")) << accepted.err;
  EXPECT_THAT(cli_.Run({"nightly", "status", "--dir", "."}).out,
              HasSubstr("; accepted by Ada L.: NaN checks (2 points)\n"));
  EXPECT_EQ(gate(106), 0) << "what was before counts as if it had the change";
  EXPECT_EQ(gate(112), 4) << "slower again";
  EXPECT_EQ(gate(100), 0) << "mended";

  const auto undone = cli_.Run({"nightly", "accept", "night-15", "--undo", "--dir", "."});
  EXPECT_THAT(undone.out, HasSubstr("night-15: 2 points are no longer accepted")) << undone.err;
  EXPECT_THAT(cli_.Run({"nightly", "status", "--dir", "."}).out, Not(HasSubstr("; accepted")));
  EXPECT_EQ(gate(106), 1) << "slower than before it was accepted";
  const auto again = cli_.Run({"nightly", "accept", "night-15", "--undo", "--dir", "."});
  EXPECT_EQ(again.status.exit_code, 2);
  EXPECT_THAT(again.err, HasSubstr("night-15 is not accepted"));
}

// Nothing that was measured while the infrastructure failed is part of a baseline.
TEST_F(GateProgram, ANightThatFailedMovesNoBaseline) {
  {
    store::Store store = store::Store::Open(cli_.dir.path() / "ridgeline.db", store::Store::Mode::kReadWrite);
    testing::Nights nights(store);
    nights.AddSeveral(6);
    nights.Add("night-7", 110);
    nights.Add("tonight", 100);
  }
  regress::Night night;
  night.name = "night-7";
  night.started_unix_s = night.ended_unix_s = 1;
  night.exit_code = 3;
  regress::WriteNight(night, cli_.dir / "nights");
  const std::vector<std::string> gate = {"gate", "tonight", "--baseline", "night-*", "--records", "nights"};
  EXPECT_THAT(
      cli_.Run(gate).out,
      HasSubstr("18 runs of the 20 that a baseline takes; 2 more runs would decide: 1 more night like this one"));
  night.exit_code = 0;  // the night was resumed
  regress::WriteNight(night, cli_.dir / "nights");
  EXPECT_EQ(cli_.Run(gate).status.exit_code, 0);
  EXPECT_EQ(cli_.Run({"gate", "tonight", "--records", "none"}).status.exit_code, 2);
}

// Nights of a sweep, measured for real by a trainer whose speed depends on its build.
class GateConfirms : public ::testing::Test {
 protected:
  // A folder with a trainer of this speed in tokens per second.
  std::string Build(const std::string& name, int tokens_per_s) {
    const auto folder = cli_.dir.path() / name;
    std::filesystem::create_directories(folder);
    const auto program = folder / "fake_trainer";
    std::ofstream(program) << "#!/bin/sh\nshift\nexec " << testing::FakeProgram("fake_trainer").string()
                           << " speed=" << tokens_per_s << " \"$@\"\n";
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    return folder.string();
  }
  // Seven simulated nights of the base build, and `tonight` of head.
  void MeasureNights(const std::string& head) {
    const auto sweep = cli_.WriteSweep(2, "ok", "measure: {repeats: 3, warmup_steps: 1, steps: 2}\n");
    for (int night = 1; night <= 7; ++night) {
      const auto run = cli_.Run({"run", sweep.string(), "--campaign", "night-" + std::to_string(night)});
      ASSERT_TRUE(run.status.ok()) << run.err;
    }
    const std::string text = ReadFile(sweep);
    const std::string usual = testing::FakeProgram("fake_trainer").string();
    std::string of_head = text;
    of_head.replace(of_head.find(usual), usual.size(), head + "/fake_trainer");
    WriteFileAtomic(sweep, of_head);
    const auto tonight = cli_.Run({"run", sweep.string(), "--campaign", "tonight"});
    ASSERT_TRUE(tonight.status.ok()) << tonight.err;
    WriteFileAtomic(sweep, text);
  }

  Cli cli_;
};

TEST_F(GateConfirms, ASlowdownOfTheBuild) {
  const std::string base = Build("base", 100);
  const std::string head = Build("head", 94);
  MeasureNights(head);
  EXPECT_EQ(cli_.Run({"gate", "tonight"}).status.exit_code, 4);
  const std::vector<std::string> confirm = {"gate",         "tonight", "--confirm",    "sweep.yaml",
                                            "--base-build", base,      "--head-build", head};
  const auto shown = cli_.Run(confirm);
  EXPECT_EQ(shown.status.exit_code, 1) << shown.err << shown.out;
  EXPECT_THAT(shown.out, HasSubstr("measured again in turns: slower in two rounds"));
  EXPECT_THAT(shown.err, HasSubstr("round-1-pair-1 of 2 points, base first"));
  EXPECT_THAT(shown.err, HasSubstr("round-2-pair-6 of 2 points, head first"));
  EXPECT_THAT(shown.err, Not(HasSubstr("round-3")));
  EXPECT_EQ(cli_.Count("SELECT count(*) FROM measurements"), 16) << "the turns are no part of the history";
  std::filesystem::remove_all(base);
  std::filesystem::create_directory(base);
  std::filesystem::copy(head + "/fake_trainer", base + "/fake_trainer");
  EXPECT_EQ(cli_.Run(confirm).status.exit_code, 1) << "what was measured is not measured again";
}

TEST_F(GateConfirms, ClearsAFalseAlarm) {
  const std::string base = Build("base", 90);  // the machine is slower tonight, for both
  MeasureNights(base);
  const auto shown =
      cli_.Run({"gate", "tonight", "--confirm", "sweep.yaml", "--base-build", base, "--head-build", base});
  EXPECT_EQ(shown.status.exit_code, 0) << shown.err << shown.out;
  EXPECT_THAT(shown.out, HasSubstr("measured again in turns: no slower"));
  EXPECT_THAT(shown.err, HasSubstr("are one build"));
}

// A definition's trainer, whose speed depends on its script.
TEST_F(GateConfirms, ASlowdownOfADefinedTrainer) {
  const auto write = [&](const std::string& folder, int ms) {
    std::filesystem::create_directory(cli_.dir / folder);
    WriteFile(cli_.dir / folder / "mine.sh", fmt::format("for i in 1 2 3; do echo \"step $i: {} ms\"; done\n", ms));
  };
  write("today", 100);
  write("yesterday", 100);
  WriteFile(cli_.dir / "mine.yaml",
            "name: mine\nabout: a script\nversion: \"1\"\ntested: log\nresult: patterns\n"
            "command: [/bin/sh, '{{env.MINE}}/mine.sh', '{{layers}}', '{{speed}}']\nprocesses: one\n"
            "fields: {speed: {type: integer, default: 5, min: 1}}\nsupports: {seq_length: any}\n"
            "metrics: [{name: step_time, regex: 'step (?P<step>\\d+): (?P<value>\\S+) ms', unit: ms, take: series}]\n"
            "exit_codes: {137: oom_host}\n");
  WriteFile(cli_.dir / "sweep.yaml",
            fmt::format("name: test\ndefaults: {{model: llama-5m, seq_length: 32, trainer: mine, speed: 7}}\n"
                        "measure: {{warmup_steps: 0, steps: 3, repeats: 3}}\nlaunch: {{environment: {{MINE: {}}}}}\n",
                        (cli_.dir / "today").string()));
  for (int night = 1; night <= 8; ++night) {
    if (night == 8) write("today", 110);
    const auto run = cli_.Run({"run", "sweep.yaml", "--campaign", fmt::format("night-{}", night)});
    ASSERT_TRUE(run.status.ok()) << run.err;
  }
  const auto confirm = [&](const std::string& base) {
    return cli_.Run({"gate", "night-8", "--confirm", "sweep.yaml", "--base-build", base});
  };
  const auto shown = confirm("yesterday");
  EXPECT_EQ(shown.status.exit_code, 1) << shown.err << shown.out;
  EXPECT_THAT(shown.out, HasSubstr("measured again in turns: slower in two rounds"));
  std::filesystem::create_directory(cli_.dir / "empty");
  const auto nothing = confirm("empty");
  EXPECT_EQ(nothing.status.exit_code, 2);
  EXPECT_THAT(nothing.err, HasSubstr("/empty has nothing of what trainer mine starts: no sh, no mine.sh"));
}

TEST_F(GateConfirms, OnlyPointsOfTheSweepByProgramsThatAreThere) {
  const std::string head = Build("head", 90);
  MeasureNights(head);
  EXPECT_THAT(cli_.Run({"gate", "tonight", "--confirm", "sweep.yaml"}).err, HasSubstr("--base-build"));
  const auto no_program = cli_.Run(
      {"gate", "tonight", "--confirm", "sweep.yaml", "--base-build", "head", "--head-build", cli_.dir.path().string()});
  EXPECT_EQ(no_program.status.exit_code, 2) << no_program.err;
  EXPECT_THAT(no_program.err, HasSubstr("there is no program"));
  cli_.WriteSweep(1, "ok", "measure: {repeats: 3, warmup_steps: 1, steps: 2}\n");
  const auto other = cli_.Run({"gate", "tonight", "--confirm", "sweep.yaml", "--base-build", "head"});
  EXPECT_EQ(other.status.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("the suspect seed=2 is not a point of sweep.yaml"));
}

TEST_F(GateConfirms, TheSameCommandResumesAnInterruptedGate) {
  const std::string head = Build("head", 90);
  MeasureNights(head);
  const auto base = cli_.dir.path() / "base";
  std::filesystem::create_directory(base);
  std::filesystem::create_symlink(testing::FakeProgram("fake_trainer"), base / "fake_trainer");
  const auto sweep = cli_.WriteSweep(2, "sleep", "measure: {repeats: 3, warmup_steps: 1, steps: 2}\n");
  const std::vector<std::string> confirm = {"gate",         "tonight",      "--baseline",  "night-*",      "--confirm",
                                            sweep.string(), "--base-build", base.string(), "--head-build", head};
  Child child = cli_.Start(confirm);
  ASSERT_TRUE(testing::Eventually([&] { return cli_.Processes().size() > 1; }));
  ASSERT_TRUE(testing::Eventually(
      [&] { return ReadFile(cli_.dir.path() / "err").find("round-1-pair-1") != std::string::npos; }));
  child.Signal(SIGINT);
  const auto stopped = cli_.Finish(child);
  EXPECT_EQ(stopped.status.exit_code, 130) << stopped.err;
  EXPECT_THAT(stopped.err, HasSubstr("to resume, run the same command"));
}

TEST_F(GateConfirms, HowOftenItIsWrongIsMeasuredBySameAgainstSame) {
  const auto sweep = cli_.WriteSweep(2, "ok",
                                     "measure: {repeats: 3, warmup_steps: 1, steps: 2}\n"
                                     "setup: [bash, -c, 'echo once >> set-up']\n");
  const std::vector<std::string> calibrate = {"gate", "--calibrate", sweep.string(), "--nights"};
  const auto with = [&](const char* nights) {
    std::vector<std::string> arguments = calibrate;
    arguments.emplace_back(nights);
    return cli_.Run(arguments);
  };
  EXPECT_EQ(with("0").status.exit_code, 2) << "nothing was measured yet";
  const auto shown = with("2");
  EXPECT_EQ(shown.status.exit_code, 0) << shown.err << shown.out;
  EXPECT_THAT(shown.err, HasSubstr("session-001: run 26 of 26, of 2 points"));
  EXPECT_THAT(shown.out, HasSubstr("0 of 4 nights of a point were suspects"));
  EXPECT_THAT(shown.out, HasSubstr("0 of 2 verdicts"));
  EXPECT_THAT(shown.out, HasSubstr("One session knows no variance between sessions"));
  // Each call adds a session.
  const auto second = with("1");
  EXPECT_EQ(second.status.exit_code, 0) << second.err << second.out;
  EXPECT_THAT(second.err, HasSubstr("session-002: run 23 of 23, of 2 points"));
  EXPECT_THAT(second.out, HasSubstr("\nsession-002 "));
  EXPECT_THAT(second.out, HasSubstr("0 of 4 sessions of a point were suspects compared with the other sessions"));
  const auto again = with("0");
  EXPECT_EQ(again.err, "");
  EXPECT_EQ(again.out, second.out);
  EXPECT_EQ(ReadFile(cli_.dir.path() / "set-up"), "once\n");
  EXPECT_EQ(cli_.Run({"gate", "tonight", "--calibrate", sweep.string()}).status.exit_code, 2);
  EXPECT_EQ(cli_.Run({"gate", "tonight", "--nights", "2"}).status.exit_code, 2);
}

TEST_F(GateConfirms, ASessionThatWasInterruptedGoesOn) {
  const std::string usual = testing::FakeProgram("fake_trainer").string();
  WriteFile(cli_.dir / "trainer", fmt::format("#!/bin/sh\nif [ -e {0}/third ] && [ -e {0}/hang ]; then shift; exec {1} "
                                              "sleep \"$@\"; fi\nmv {0}/second {0}/third || mv {0}/first {0}/second || "
                                              "touch {0}/first\nexec {1} \"$@\"\n",
                                              cli_.dir.path().string(), usual));
  std::filesystem::permissions(cli_.dir / "trainer", std::filesystem::perms::owner_all);
  WriteFile(cli_.dir / "hang", "");
  const auto sweep = cli_.WriteSweep(1, "ok", "measure: {repeats: 1, warmup_steps: 1, steps: 2}\n");
  WriteFile(sweep, std::regex_replace(ReadFile(sweep), std::regex(usual), (cli_.dir / "trainer").string()));
  const std::vector<std::string> calibrate = {"gate", "--calibrate", sweep.string(), "--nights", "1"};
  Child child = cli_.Start(calibrate);
  ASSERT_TRUE(testing::Eventually(
      [&] { return ReadFile(cli_.dir.path() / "err").find("session-001: run 4 of 23") != std::string::npos; }));
  child.Signal(SIGINT);
  const auto stopped = cli_.Finish(child);
  EXPECT_EQ(stopped.status.exit_code, 130) << stopped.err;
  std::filesystem::remove(cli_.dir / "hang");
  const auto whole = cli_.Run(calibrate);
  EXPECT_EQ(whole.status.exit_code, 0) << whole.err;
  EXPECT_THAT(whole.err, HasSubstr("session-001 goes on"));
  EXPECT_THAT(whole.out, HasSubstr("One session knows no variance between sessions"));
}

}  // namespace
}  // namespace ridgeline::cli
