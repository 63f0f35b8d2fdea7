// Nights, as a scheduler runs them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <string>

#include "base/error.h"
#include "base/json.h"
#include "base/process.h"
#include "nightly/install.h"
#include "tests/cli/cli.h"

namespace ridgeline::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kAlert = "#!/bin/sh\nprintf '%s|%s|%s\\n' \"$1\" \"$2\" \"$3\" >>\"$(dirname \"$0\")/alerts\"\n";

class Nightly : public ::testing::Test {
 protected:
  Nightly() {
    WriteFile(cli_.dir / "alert", kAlert);
    std::filesystem::permissions(cli_.dir / "alert", std::filesystem::perms::owner_all);
  }
  Cli::Output RunNight(const std::string& sweep) {
    return cli_.Run({"nightly", "run", sweep, "--dir", "nights of mine", "--alert", (cli_.dir / "alert").string()});
  }
  std::string Status() { return cli_.Run({"nightly", "status", "--dir", "nights of mine"}).out; }

  Cli cli_;
};

// As `ridgeline run` resolves it, where a schedule starts the night in another folder.
TEST_F(Nightly, ARelativeTrainerCountsFromTheFolderInWhichTheNightWasInstalled) {
  const std::filesystem::path trainer = cli_.dir / "trainer";
  WriteFile(trainer, "#!/bin/sh\nexec " + testing::FakeProgram("fake_trainer").string() + " \"$@\"\n");
  std::filesystem::permissions(trainer, std::filesystem::perms::owner_all);
  WriteFile(cli_.dir / "relative.yaml",
            "name: relative\ndefaults: {model: llama-10m, seq_length: 64}\nlaunch: {trainer: [./trainer, ok]}\n");
  const auto night = RunNight("relative.yaml");
  EXPECT_EQ(night.status.exit_code, 4) << night.out << ReadFile(cli_.dir / "nights of mine/last/run.log");
  EXPECT_THAT(cli_.Run({"nightly", "install", "relative.yaml", "--cron"}).out,
              HasSubstr(" --work-dir " + cli_.dir.path().string() + "\n"));
}

TEST_F(Nightly, ANightIsACampaignWithItsGateAndItsPages) {
  const std::string sweep = cli_.WriteSweep(2, "ok");
  EXPECT_EQ(cli_.Run({"nightly", "status"}).status.exit_code, 2);
  const auto first = RunNight(sweep);
  EXPECT_EQ(first.status.exit_code, 4) << first.out << first.err;  // no baseline yet
  EXPECT_THAT(first.out, HasSubstr(": INCONCLUSIVE: 2 inconclusive\n")) << "the answer once";
  // If it had failed, none of it would be in a baseline: the next night follows a record that says so.
  const auto folder = std::filesystem::directory_iterator(cli_.dir / "nights of mine/nights")->path();
  const std::filesystem::path record = folder / "night.json";
  const std::string said = ReadFile(record);
  WriteFile(record, std::regex_replace(said, std::regex("\"exit_code\": ?4"), "\"exit_code\": 2"));
  const auto second = RunNight(sweep);
  EXPECT_EQ(second.status.exit_code, 4) << second.out << second.err;
  WriteFile(record, said);
  const Json findings = ReadJsonFile(folder.string() + "-2/gate.json").at("findings");
  EXPECT_EQ(findings.at(0).at("base_runs"), 0) << "the first night's runs are a baseline";
  store::Store store = store::Store::Open(cli_.dir / "nights of mine/ridgeline.db", store::Store::Mode::kReadOnly);
  EXPECT_EQ(std::get<int64_t>(store.Query("SELECT count(DISTINCT campaign) FROM results").rows.at(0).at(0)), 2);
  EXPECT_THAT(Status(), AllOf(HasSubstr("INCONCLUSIVE"), HasSubstr("There was no good night yet.")));
  const auto alerts = ReadFile(cli_.dir / "alerts");
  EXPECT_THAT(alerts, AllOf(HasSubstr("|INCONCLUSIVE|"), HasSubstr("/nights of mine/nights/night-")));
  EXPECT_TRUE(std::filesystem::equivalent(cli_.dir / "nights of mine/last", folder.string() + "-2"));
  for (const char* file : {"pages/index.html", "pages/sweep.html", "nightly.prom", "last/gate.md"}) {
    EXPECT_TRUE(std::filesystem::exists(cli_.dir / "nights of mine" / file)) << file;
  }
  EXPECT_THAT(ReadFile(cli_.dir / "nights of mine/pages/regression.html"), HasSubstr("INCONCLUSIVE"));
  EXPECT_THAT(ReadFile(cli_.dir / "nights of mine/nightly.prom"),
              AllOf(HasSubstr("ridgeline_nightly_last_exit_code{"), HasSubstr("} 4\n"),
                    Not(HasSubstr("ridgeline_nightly_last_success"))));
  for (const auto& night : std::filesystem::directory_iterator(cli_.dir / "nights of mine/nights")) {
    for (const char* file : {"night.json", "run.log", "gate.json", "gate.xml", "gate.md", "gate.prom"}) {
      EXPECT_TRUE(std::filesystem::exists(night.path() / file)) << night.path() << file;
    }
  }
}

TEST_F(Nightly, ASweepThatIsWrongIsRefusedAndToldOf) {
  WriteFile(cli_.dir / "wrong.yaml", "name: [\n");
  const auto night = RunNight((cli_.dir / "wrong.yaml").string());
  EXPECT_EQ(night.status.exit_code, 2);
  EXPECT_THAT(Status(), AllOf(HasSubstr("REFUSED"), HasSubstr("wrong.yaml:")));
  EXPECT_THAT(ReadFile(cli_.dir / "alerts"), HasSubstr("|REFUSED|"));
}

// An unavailable cluster costs a night. That night does not count, and is resumed on the same day.
TEST_F(Nightly, ANightThatTheInfrastructureBrokeDoesNotCountAndIsResumed) {
  const std::string sweep = cli_.WriteSweep(2, "ok");
  MakeDirs(cli_.dir / "nights of mine/last");  // a folder in the link's place is no reason to lose a night
  WriteFile(cli_.dir / "nights of mine/runs", "where the jobs' folders should be");
  EXPECT_EQ(RunNight(sweep).status.exit_code, 3);
  EXPECT_THAT(Status(), AllOf(HasSubstr("FAILED"), HasSubstr("the run ended with 3: cannot make the folder")));
  EXPECT_THAT(ReadFile(cli_.dir / "alerts"), HasSubstr("|FAILED|"));
  EXPECT_THAT(
      ReadFile(cli_.dir / "nights of mine/nightly.prom"),
      AllOf(HasSubstr("ridgeline_nightly_last_exit_code{sweep=\"test\"} 3\n"),
            HasSubstr("ridgeline_nightly_first_start_timestamp_seconds{sweep=\"test\"} "), Not(HasSubstr("_points"))))
      << "nothing was compared";
  std::filesystem::remove(cli_.dir / "nights of mine/runs");
  EXPECT_EQ(RunNight(sweep).status.exit_code, 4);
  const std::string status = Status();
  EXPECT_THAT(status, Not(HasSubstr("FAILED")));
  EXPECT_THAT(status, Not(HasSubstr("-2 "))) << "the same night";
}

// A run that fails by chance is repeated before anybody is alerted. A run that fails twice is reported.
TEST_F(Nightly, RunsAFailedPointAgainBeforeTheNightIsRed) {
  const std::string usual = testing::FakeProgram("fake_trainer").string();
  WriteFile(cli_.dir / "trainer",
            "#!/bin/sh\ncd \"$(dirname \"$0\")\"\nif [ -e once ] || [ -e always ]; then rm -f once; exit 1; fi\ncd "
            "\"$OLDPWD\"\nexec " +
                usual + " \"$@\"\n");
  std::filesystem::permissions(cli_.dir / "trainer", std::filesystem::perms::owner_all);
  const std::string sweep = cli_.WriteSweep(1, "ok");
  std::string text = ReadFile(sweep);
  text.replace(text.find(usual), usual.size(), (cli_.dir / "trainer").string());
  WriteFile(sweep, text);
  EXPECT_EQ(RunNight(sweep).status.exit_code, 4);
  WriteFile(cli_.dir / "once", "");
  const auto flaky = RunNight(sweep);
  EXPECT_EQ(flaky.status.exit_code, 4) << flaky.out << flaky.err;
  WriteFile(cli_.dir / "always", "");
  EXPECT_EQ(RunNight(sweep).status.exit_code, 1);
  EXPECT_THAT(Status(), HasSubstr("REGRESSED"));
}

// A gate that cannot compare refuses no sweep, and loses no measurement: the same night is resumed.
TEST_F(Nightly, AGateThatCannotCompareIsNoAnswer) {
  const std::string sweep = cli_.WriteSweep(1, "ok");
  const auto night = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"nightly", "run", sweep, "--dir", "nights of mine"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return cli_.Run(arguments);
  };
  EXPECT_EQ(night({"--base-build", "nowhere"}).status.exit_code, 2);
  EXPECT_FALSE(std::filesystem::exists(cli_.dir / "nights of mine")) << "nothing was measured";
  EXPECT_EQ(night({"--pinned", "release-1"}).status.exit_code, 3);
  EXPECT_THAT(Status(), AllOf(HasSubstr("FAILED"), HasSubstr("the gate ended with 2: gate: 'release-1' is neither")));
  EXPECT_EQ(night({}).status.exit_code, 4);
  EXPECT_THAT(Status(), AllOf(HasSubstr("INCONCLUSIVE"), Not(HasSubstr("FAILED"))));
  store::Store store = store::Store::Open(cli_.dir / "nights of mine/ridgeline.db", store::Store::Mode::kReadOnly);
  EXPECT_EQ(std::get<int64_t>(store.Query("SELECT count(*) FROM results").rows.at(0).at(0)), 1);
}

// A reader of a night's files must not get those of an earlier attempt.
TEST_F(Nightly, ARefusedNightHasNoGateOfAnAttemptBefore) {
  const std::string sweep = cli_.WriteSweep(1, "ok");
  WriteFile(cli_.dir / "sweep.yaml.good", ReadFile(sweep));
  MakeDirs(cli_.dir / "nights of mine");
  WriteFile(cli_.dir / "nights of mine/runs", "where the jobs' folders should be");
  EXPECT_EQ(RunNight(sweep).status.exit_code, 3);
  const auto last = cli_.dir / "nights of mine/last";
  WriteFile(last / "gate.md", "of an attempt before");
  WriteFile(sweep, "name: [\n");
  EXPECT_EQ(RunNight(sweep).status.exit_code, 2);
  EXPECT_FALSE(std::filesystem::exists(last / "gate.md"));
  EXPECT_THAT(ReadFile(cli_.dir / "nights of mine/nightly.prom"),
              AllOf(HasSubstr("ridgeline_nightly_last_exit_code{sweep=\"test\"} 2\n"), Not(HasSubstr("lost_points"))))
      << "the name is that of the night before, and what is unknown is no figure";
}

// Nothing of a night that is told to stop runs on, where it would be in the way of the next.
TEST_F(Nightly, StoppingANightStopsItsSweepAndTheSameDayResumesIt) {
  const std::string mode = cli_.dir / "mode";
  WriteFile(mode, "sleep");
  const std::string sweep = cli_.WriteSweep(1, "as=" + mode);
  const auto start = [&] {
    Child night = cli_.Start({"nightly", "run", sweep, "--dir", "nights of mine"});
    EXPECT_TRUE(testing::Eventually([&] { return !testing::ProcessesWith("as=" + mode).empty(); }));
    return night;
  };
  Child told = start();
  told.Signal(SIGTERM);
  const auto stopped = cli_.Finish(told);
  EXPECT_EQ(stopped.status.exit_code, 130) << stopped.err;
  EXPECT_THAT(Status(), HasSubstr("CUT SHORT"));
  EXPECT_TRUE(testing::Eventually([&] { return cli_.Processes().empty(); }));
  WriteFile(mode, "ok");
  const auto resumed = RunNight(sweep);
  EXPECT_EQ(resumed.status.exit_code, 4) << resumed.out << resumed.err;
  EXPECT_THAT(Status(), AllOf(Not(HasSubstr("CUT SHORT")), Not(HasSubstr("-2 ")))) << "the same night";
  WriteFile(mode, "sleep");
  Child killed = start();
  killed.Signal(SIGKILL);
  EXPECT_EQ(killed.Wait().signal, SIGKILL);
  const std::string db = cli_.dir / "nights of mine/ridgeline.db";
  const auto is_held = [&] { return FileLock::Try(db + ".lock") == std::nullopt; };
  EXPECT_TRUE(testing::Eventually([&] { return !is_held(); })) << "the database would be in use";
}

TEST_F(Nightly, OneAtATime) {
  const std::string sweep = cli_.WriteSweep(1, "ok");
  MakeDirs(cli_.dir / "nights of mine");
  const auto lock = FileLock::Try(cli_.dir / "nights of mine/lock");
  ASSERT_TRUE(lock);
  const auto night = RunNight(sweep);
  EXPECT_EQ(night.status.exit_code, 3);
  EXPECT_THAT(night.err, HasSubstr("another night is at work"));
  EXPECT_FALSE(std::filesystem::exists(cli_.dir / "nights of mine/nights"));
}

TEST_F(Nightly, InstallPrintsWhatASchedulerTakes) {
  const std::string sweep = cli_.WriteSweep(1, "ok");
  const auto cron = cli_.Run({"nightly", "install", sweep, "--cron", "--at", "23:05", "--dir", "a b"});
  EXPECT_EQ(cron.status.exit_code, 0) << cron.err;
  EXPECT_THAT(cron.out, AllOf(HasSubstr("\n5 23 * * * "), HasSubstr("/a b'")));
  // Paths are absolute, because a scheduler starts it in another folder.
  MakeDirs(cli_.dir / "definitions");
  EXPECT_THAT(cli_.Run({"nightly", "install", sweep, "--cron", "--trainers", "definitions", "--alert", "./page"}).out,
              AllOf(HasSubstr(" --trainers " + (cli_.dir / "definitions").string()),
                    HasSubstr(" --alert " + (cli_.dir / "page").string())));
  EXPECT_THAT(cli_.Run({"nightly", "install", sweep, "--scrontab"}).out, HasSubstr("#SCRON "));
  const auto kubernetes = cli_.Run({"nightly", "install", sweep, "--kubernetes", "--at", "2:00"});
  EXPECT_THAT(kubernetes.out, AllOf(HasSubstr("  schedule: \"0 2 * * *\"\n"), HasSubstr("\n    name: test\n"),
                                    HasSubstr("kind: CronJob"), Not(HasSubstr("name: nightly\n    description"))));
  const auto more = cli_.Run({"nightly", "install", sweep, "--kubernetes", "--alert", "page-me"});
  EXPECT_EQ(more.status.exit_code, 2);
  EXPECT_THAT(more.err, HasSubstr("install --kubernetes has no --alert")) << "it would be dropped in silence";
  EXPECT_EQ(cli_.Run({"nightly", "install", sweep, "--systemd", "--to", "units"}).status.exit_code, 0);
  EXPECT_TRUE(std::filesystem::exists(cli_.dir / "units/ridgeline-nightly.timer"));
  EXPECT_EQ(cli_.Run({"nightly", "install", sweep}).status.exit_code, 2);
  EXPECT_EQ(cli_.Run({"nightly", "install", sweep, "--cron", "--systemd"}).status.exit_code, 2);
  for (const char* at : {"24:00", "1:5", "1:60", "1", "", "-1:00", "1:00x"}) {
    EXPECT_EQ(cli_.Run({"nightly", "install", sweep, "--cron", "--at", at}).status.exit_code, 2) << at;
  }
}

// systemd itself accepts the units, and says when the next night would be.
TEST_F(Nightly, SystemdTakesItsUnits) {
  const char* path = std::getenv("PATH");
  if (FindProgram("systemd-analyze", path == nullptr ? "" : path).empty()) {
    GTEST_SKIP() << "systemd-analyze is not installed (systemd)";
  }
  const std::string sweep = cli_.WriteSweep(1, "ok");
  const auto install = cli_.Run(
      {"nightly", "install", sweep, "--systemd", "--at", "2:05", "--dir", "50% of $HOME; \"it's\"", "--to", "units"});
  ASSERT_EQ(install.status.exit_code, 0) << install.err;
  const std::string units = cli_.dir / "units";
  const Captured checked = ridgeline::Run({"systemd-analyze", "verify", "--man=no", "--recursive-errors=no",
                                           units + "/ridgeline-nightly.service", units + "/ridgeline-nightly.timer"});
  EXPECT_TRUE(checked.status.ok()) << checked.stderr_text;
  EXPECT_EQ(checked.stderr_text, "") << "what it warns of";
  const std::string timer = ReadFile(units + "/ridgeline-nightly.timer");
  std::smatch when;
  ASSERT_TRUE(std::regex_search(timer, when, std::regex("\nOnCalendar=(.*)\n")));
  const Captured next = ridgeline::Run({"systemd-analyze", "calendar", "--base-time=2026-02-01 03:00:00 UTC", when[1]});
  EXPECT_TRUE(next.status.ok()) << next.stderr_text;
  EXPECT_THAT(next.stdout_text, HasSubstr("2026-02-02 02:05:00 UTC"));
}

TEST(NightlyInstall, WordsAreQuotedAsEachSchedulerHasIt) {
  nightly::NightlySchedule schedule;
  schedule.name = "s";
  schedule.command = {"/opt/ridge line/ridgeline", "it's", "$HOME", "\"q\"", "a\\b"};
  EXPECT_THAT(nightly::CronText(schedule), HasSubstr(R"('/opt/ridge line/ridgeline' 'it'\''s' '$HOME' '"q"' 'a\b')"));
  EXPECT_THAT(nightly::SystemdText(schedule).service,
              HasSubstr(R"(ExecStart="/opt/ridge line/ridgeline" "it's" "$$HOME" "\"q\"" "a\\b")"));
  schedule.command.emplace_back("50%");
  EXPECT_THROW(nightly::CronText(schedule), Error);
  EXPECT_THROW(nightly::ScrontabText(schedule), Error);
  EXPECT_THAT(nightly::SystemdText(schedule).service, HasSubstr("\"50%%\""));
  schedule.command.back() = "a\nb";
  EXPECT_THROW(nightly::CronText(schedule), Error);
  EXPECT_THAT(nightly::SystemdText(schedule).service, HasSubstr("\"a\\nb\""));
}

// Nothing in a sweep's text ends the block that contains it.
TEST(NightlyInstall, ASweepStaysWithinItsBlock) {
  nightly::NightlySchedule schedule;
  schedule.sweep_text = "  name: x\r\n\n---\nkind: Secret\n";
  const std::string shipped = "data:\n  sweep.yaml: |\n    name: old\n---\nspec:\n  schedule: \"0 1 * * *\"\nend: 1\n";
  EXPECT_EQ(
      nightly::KubernetesText(schedule, shipped),
      "data:\n  sweep.yaml: |2\n      name: x\n\n    ---\n    kind: Secret\n---\nspec:\n  schedule: \"0 1 * * *\"\n"
      "end: 1\n");
  schedule.sweep_text = "name: \x01\n";
  EXPECT_THROW(nightly::KubernetesText(schedule, shipped), Error);
  schedule.sweep_text = "name: x\n";
  EXPECT_THROW(nightly::KubernetesText(schedule, "kind: CronJob\n"), Error);
}

}  // namespace
}  // namespace ridgeline::cli
