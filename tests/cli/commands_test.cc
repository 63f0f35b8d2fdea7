#include "cli/commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "base/error.h"
#include "base/help_form.h"
#include "base/json.h"
#include "base/version.h"
#include "ridgeline/job_line.h"
#include "tests/cli/cli.h"

namespace ridgeline::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The text with one space in place of each run of them, as lines are broken anywhere.
std::string InOneLine(const std::string& text) {
  std::istringstream words(text);
  std::string line;
  for (std::string word; words >> word;) line += (line.empty() ? "" : " ") + word;
  return line;
}

void ExpectNarrow(const std::string& help) {
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), kHelpColumns) << line;
}

TEST(Commands, EveryOneHasHelpWorthReading) {
  Cli cli;
  const std::string all = cli.Run({"--help"}).out;
  for (const Command& command : Commands()) {
    const auto help = cli.Run({std::string(command.name), "--help"});
    EXPECT_EQ(help.status.exit_code, 0) << command.name;
    EXPECT_THAT(help.err, IsEmpty());
    EXPECT_THAT(help.out, AllOf(HasSubstr("Usage"), HasSubstr("ridgeline " + std::string(command.name))));
    EXPECT_GT(std::count(help.out.begin(), help.out.end(), '\n'), 6) << command.name << " says too little";
    EXPECT_THAT(InOneLine(all), HasSubstr(std::string(command.summary)));
    EXPECT_THAT(help.out, HasSubstr("Example")) << command.name;
    ExpectNarrow(help.out);
  }
  ExpectNarrow(all);
  for (const auto& [command, parts] : std::map<std::string, std::vector<std::string>>{
           {"db", {"check", "merge", "backup", "export", "prune", "delete", "vacuum"}},
           {"nightly", {"run", "status", "accept", "install"}},
           {"trainers", {"show", "try", "check", "new"}}}) {
    for (const std::string& part : parts) {
      const std::string help = cli.Run({command, part, "--help"}).out;
      EXPECT_THAT(help, HasSubstr("Example")) << command << " " << part;
      ExpectNarrow(help);
    }
  }
}

TEST(Commands, VersionIsOneLine) {
  Cli cli;
  const auto version = cli.Run({"--version"});
  EXPECT_EQ(version.status.exit_code, 0);
  EXPECT_EQ(version.out, "ridgeline " + std::string(kVersion) + "\n");
}

// Otherwise the first file that is opened would receive the program's messages.
TEST(Commands, ClosedStandardStreamsHarmNothing) {
  Cli cli;
  const std::string sweep = cli.WriteSweep(2, "ok");
  cli.prefix = {"/bin/sh", "-c", "exec \"$@\" <&- >&- 2>&-", "sh"};
  EXPECT_EQ(cli.Run({"run", sweep}).status.exit_code, 0);
  EXPECT_EQ(cli.Run({"plan"}).status.exit_code, 2);
  cli.prefix.clear();
  EXPECT_TRUE(cli.Run({"db", "check"}).status.ok());
  EXPECT_EQ(cli.Count("SELECT count(*) FROM results WHERE status = 'ok'"), 2);
}

TEST(Commands, ClosedStandardStreamsHarmNoJobEither) {
  Cli cli;
  ASSERT_EQ(cli.Run({"run", cli.WriteSweep(1, "ok")}).status.exit_code, 0);
  const auto jobs = std::filesystem::directory_iterator(cli.dir.path() / "ridgeline-out/jobs");
  const std::filesystem::path job = jobs->path();
  std::filesystem::remove(job / "results.log");
  cli.prefix = {"/bin/sh", "-c", "exec \"$@\" <&- >&- 2>&-", "sh"};
  EXPECT_EQ(cli.Run({"exec", job / "job.json", "--print-results", "--summary", "summary"}).status.exit_code, 0);
  const auto is_lines_of_results = [](const std::string& text) {
    std::string_view rest = text;
    while (!rest.empty()) {
      const size_t end = rest.find('\n');
      if (end == rest.npos || !ParseJobLine(rest.substr(0, end))) return false;
      rest.remove_prefix(end + 1);
    }
    return !text.empty();
  };
  EXPECT_TRUE(is_lines_of_results(ReadFile(job / "results.log"))) << ReadFile(job / "results.log");
  EXPECT_TRUE(is_lines_of_results(ReadFile(cli.dir.path() / "summary"))) << ReadFile(cli.dir.path() / "summary");
}

TEST(Commands, AllReportsAreAFolderOfPages) {
  Cli cli;
  const std::string sweep = cli.WriteSweep(2, "ok");
  ASSERT_EQ(cli.Run({"run", sweep}).status.exit_code, 0);
  EXPECT_EQ(cli.Run({"report", "all"}).status.exit_code, 2);
  EXPECT_EQ(cli.Run({"report", "all", "--to", "pages", "-o", "csv"}).status.exit_code, 2);
  const auto all = cli.Run({"report", "all", "--to", "pages", "--sweep", "test"});
  EXPECT_EQ(all.status.exit_code, 0) << all.err;
  const std::string index = ReadFile(cli.dir / "pages/index.html");
  for (const char* name : {"activation-checkpointing", "failures", "memory-map", "sweep"}) {
    EXPECT_TRUE(std::filesystem::exists(cli.dir / "pages" / (name + std::string(".html")))) << name;
    EXPECT_THAT(index, HasSubstr("<a href=\"" + std::string(name) + ".html\">"));
  }
  EXPECT_THAT(index, HasSubstr("2 of 2 points are measured and ok."));
  // A faulty one does not prevent the others.
  std::filesystem::create_directories(cli.dir / "own/broken");
  WriteFile(cli.dir / "own/broken/report.yaml", "title: [");
  const auto broken = cli.Run({"report", "all", "--to", "more", "--reports", (cli.dir / "own").string()});
  EXPECT_EQ(broken.status.exit_code, 2);
  EXPECT_THAT(broken.err, HasSubstr("broken: "));
  EXPECT_THAT(ReadFile(cli.dir / "more/index.html"), HasSubstr("It has no page"));
  EXPECT_TRUE(std::filesystem::exists(cli.dir / "more/sweep.html"));
}

// The user decides before a run who may read its files.
TEST(Commands, FilesAreAsPrivateAsTheUmaskSays) {
  namespace fs = std::filesystem;
  Cli cli;
  const std::string sweep = cli.WriteSweep(2, "exit=3", "report: [activation-checkpointing]\n");
  cli.prefix = {"/bin/sh", "-c", "umask 077; exec \"$@\"", "sh"};
  EXPECT_EQ(cli.Run({"run", sweep}).status.exit_code, 1);
  EXPECT_EQ(cli.Run({"db", "backup", "--to", "backup.db"}).status.exit_code, 0);
  EXPECT_EQ(cli.Run({"db", "export", "--to", "export.csv"}).status.exit_code, 0);
  EXPECT_EQ(cli.Run({"report", "activation-checkpointing", "--to", "report.html"}).status.exit_code, 0);
  EXPECT_EQ(cli.Run({"render", sweep, "--to", "rendered"}).status.exit_code, 0);
  size_t looked_at = 0;
  constexpr auto kOthers = fs::perms::group_all | fs::perms::others_all;
  for (const auto& entry : fs::recursive_directory_iterator(cli.dir.path())) {
    const fs::path name = entry.path().lexically_relative(cli.dir.path());
    if (name == "sweep.yaml" || name == "out" || name == "err") continue;  // the test's own
    ++looked_at;
    EXPECT_EQ(entry.symlink_status().permissions() & kOthers, fs::perms::none) << name;
  }
  EXPECT_GT(looked_at, 20U);
}

TEST(Commands, ALockThatIsALinkOrAPipeIsRefused) {
  namespace fs = std::filesystem;
  for (const bool link : {true, false}) {
    Cli cli;
    const std::string sweep = cli.WriteSweep(1, "ok");
    const fs::path lock = cli.dir.path() / "ridgeline.db.lock";
    const fs::path elsewhere = cli.dir.path() / "elsewhere";
    if (link) {
      fs::create_symlink(elsewhere, lock);
    } else {
      ASSERT_EQ(::mkfifo(lock.c_str(), 0600), 0);
    }
    const auto run = cli.Run({"run", sweep});
    EXPECT_EQ(run.status.exit_code, 3) << run.out;
    EXPECT_THAT(run.err, HasSubstr("is not a regular file"));
    EXPECT_FALSE(fs::exists(elsewhere));
    EXPECT_EQ(cli.Run({"status"}).status.exit_code, 2);  // it also checks the lock if there is a database
  }
}

TEST(Commands, HelpAndVersionMayBeAskedForInWords) {
  Cli cli;
  EXPECT_EQ(cli.Run({"version"}).out, cli.Run({"--version"}).out);
  EXPECT_EQ(cli.Run({"help"}).out, cli.Run({"--help"}).out);
  EXPECT_EQ(cli.Run({"help", "run"}).out, cli.Run({"run", "--help"}).out);
  const auto unknown = cli.Run({"help", "rnu"});
  EXPECT_EQ(unknown.status.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("did you mean 'run'"));
}

TEST(Commands, WrongUsageIsExitCode2AndNamesTheNearest) {
  Cli cli;
  const struct {
    std::vector<std::string> arguments;
    std::string says;
  } cases[] = {
      {{"rnu", "x.yaml"}, "did you mean 'run'"},
      {{"frobnicate"}, "there is no command 'frobnicate'"},
      {{"--versoin"}, "did you mean '--version'"},
      {{"run"}, "sweep is required"},
      {{"run", "a.yaml", "b.yaml"}, "'b.yaml' was not expected"},
      {{"run", "a.yaml", "--dbb", "x"}, "did you mean '--db'"},
      {{"run", "a.yaml", "--retry", "everything"}, "everything"},
      {{"run", "a.yaml", "--max-parallel", "0"}, "max-parallel"},
      {{"run", "a.yaml", "--max-parallel", "many"}, "many"},
      {{"completion", "tcsh"}, "tcsh"},
      {{"completion"}, "shell is required"},
      {{"plan"}, "no sweep is given"},
      {{"exec"}, "is required"},
  };
  for (const auto& c : cases) {
    const auto run = cli.Run(c.arguments);
    EXPECT_EQ(run.status.exit_code, 2) << c.arguments.front() << ": " << run.err;
    EXPECT_THAT(run.err, HasSubstr(c.says));
    EXPECT_THAT(run.err, HasSubstr("--help"));
    EXPECT_THAT(run.out, IsEmpty());
  }
  EXPECT_EQ(cli.Run({}).status.exit_code, 2);
}

TEST(Commands, AFileThatIsNotThereIsInfrastructureOrInputButNeverABug) {
  Cli cli;
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{{"run", "nowhere.yaml"},
                                                                                         {"plan", "nowhere.yaml"},
                                                                                         {"status"},
                                                                                         {"cancel", "x"},
                                                                                         {"exec", "nowhere.json"},
                                                                                         {"db", "check"},
                                                                                         {"query", "SELECT 1"}}) {
    const auto run = cli.Run(arguments);
    EXPECT_TRUE(run.status.exit_code == 2 || run.status.exit_code == 3) << arguments.front() << run.err;
    EXPECT_THAT(run.err, ::testing::StartsWith("ridgeline: ")) << arguments.front();
    EXPECT_THAT(run.err, ::testing::Not(HasSubstr("internal error")));
  }
}

TEST(Commands, AnOutputThatCannotBeWrittenIsAnError) {
  const Captured full = ridgeline::Run({"sh", "-c", Program().string() + " --help > /dev/full"});
  EXPECT_EQ(full.status.exit_code, 3);
  EXPECT_THAT(full.stderr_text, HasSubstr("standard output"));
}

TEST(Status, ShowsSweepsAndHowTheirPointsEnded) {
  Cli cli;
  const auto sweep = cli.WriteSweep(2, "exit=7");
  cli.Run({"run", sweep});
  const auto status = cli.Run({"status"});
  EXPECT_EQ(status.status.exit_code, 0);
  EXPECT_THAT(status.out, AllOf(HasSubstr("test"), HasSubstr("crashed")));
  EXPECT_EQ(cli.Run({"status", sweep}).status.exit_code, 0);
  EXPECT_EQ(cli.Run({"status", "tets"}).status.exit_code, 2);
}

TEST(Status, SpeaksJson) {
  Cli cli;
  const auto sweep = cli.WriteSweep(2, "ok");
  ASSERT_EQ(cli.Run({"run", sweep}).status.exit_code, 0);
  const Json status = ParseJson(cli.Run({"status", "-o", "json"}).out, "status");
  EXPECT_EQ(status.at("sweeps").at(0).at("ok"), 2);
  EXPECT_EQ(status.at("latest_results").at(0).at("latest_result"), "ok");
  EXPECT_TRUE(status.at("jobs").empty());
  EXPECT_TRUE(status.at("driver").is_null());
}

TEST(Status, TellsApartWhatOtherTrainersAndCoresMeasured) {
  Cli cli;
  ASSERT_EQ(cli.Run({"run", cli.WriteSweep(2, "ok")}).status.exit_code, 0);
  EXPECT_THAT(cli.Run({"status"}).out,
              HasSubstr("\nlatest result  points  newest run\nok                  2           2\n"));
  const std::string two = ReadFile(cli.WriteSweep(2, "slow=1"));
  WriteFile(cli.dir.path() / "sweep.yaml", two + "# with another\n");
  ASSERT_EQ(cli.Run({"run", "sweep.yaml"}).status.exit_code, 0);
  const auto status = cli.Run({"status"});
  EXPECT_THAT(status.out, HasSubstr("latest result  trainer "));
  EXPECT_THAT(status.out, HasSubstr("fake_trainer ok "));
  EXPECT_THAT(status.out, HasSubstr("fake_trainer slow=1 "));
  EXPECT_THAT(cli.Run({"status", "test"}).out, ::testing::Not(HasSubstr("fake_trainer")))
      << "the sweep has one of them";
  const Json json = ParseJson(cli.Run({"status", "-o", "json"}).out, "status");
  EXPECT_THAT(json.at("latest_results").at(0).at("trainer").get<std::string>(), HasSubstr("fake_trainer"));
}

TEST(Status, TellsApartWhatSetupsMeasured) {
  Cli cli;
  const std::string sweep = ReadFile(cli.WriteSweep(2, "ok"));
  WriteFile(cli.dir / "sweep.yaml",
            sweep.substr(0, sweep.rfind('}')) + ", rules: [{when: {seed: 2}, set: {environment: {LIBRARY: b}}}]}\n");
  ASSERT_EQ(cli.Run({"run", "sweep.yaml"}).status.exit_code, 0);
  const auto status = cli.Run({"status"});
  EXPECT_THAT(status.out, HasSubstr("latest result  setup "));
  EXPECT_THAT(status.out, HasSubstr(R"({"environment":{"LIBRARY":"b"}})"));
}

TEST(Status, GivesProgramsNumbers) {
  Cli cli;
  const auto sweep = cli.WriteSweep(2, "sleep");
  Child driver = cli.Start({"run", sweep});
  ASSERT_TRUE(
      testing::Eventually([&] { return !testing::ProcessesWith(cli.dir.path().string() + "/ridgeline-out").empty(); }));
  const Captured status =
      ridgeline::Run({Program().string(), "status", "-o", "json", "--db", (cli.dir.path() / "ridgeline.db").string()});
  const Json job = ParseJson(status.stdout_text, "status").at("jobs").at(0);
  EXPECT_EQ(job.at("points"), 1);
  EXPECT_EQ(job.at("results"), 0);
  EXPECT_TRUE(job.at("age_s").is_number_integer());
  EXPECT_EQ(job.at("setup").at("cpus"), 0);
  EXPECT_TRUE(job.at("now").is_null()) << "its trainer says nothing";
  driver.Signal(SIGKILL);
  driver.Wait();
}

TEST(Doctor, SpeaksJson) {
  Cli cli;
  const Json checks = ParseJson(cli.Run({"doctor", "-o", "json"}).out, "doctor");
  ASSERT_TRUE(checks.is_array());
  EXPECT_EQ(checks.at(0).at("check"), "ridgeline");
  EXPECT_EQ(checks.at(0).at("state"), "ok");
}

TEST(Doctor, ChecksEverythingOneLineEach) {
  Cli cli;
  const auto doctor = cli.Run({"doctor"});
  for (const char* name : {"ridgeline", "processor", "cores", "memory", "disk", "trainer", "sqlite", "launcher",
                           "local:", "reports", "activation-checkpointing", "sweeps"}) {
    EXPECT_THAT(doctor.out, HasSubstr(name));
  }
  const bool failed = doctor.out.find("FAIL") != std::string::npos;
  EXPECT_EQ(doctor.status.exit_code, failed ? 3 : 0) << doctor.out;
}

TEST(Plan, SaysAMemoryWithoutAUnit) {
  Cli cli;
  const auto sweep = cli.WriteSweep(1, "ok");
  for (const auto& [memory, bytes] : std::map<std::string, std::string>{{"16", "16"}, {"64B", "64"}}) {
    const auto plan = cli.Run({"plan", sweep, "--memory", memory});
    EXPECT_EQ(plan.status.exit_code, 2);
    EXPECT_EQ(plan.err, "ridgeline: plan: --memory is " + bytes +
                            " bytes, which is too little for anything\n  a number needs its unit, such as " + bytes +
                            "GB\n");
  }
  EXPECT_EQ(cli.Run({"plan", sweep, "--memory", "16000000000"}).status.exit_code, 0);
}

TEST(Plan, SaysWhatTheLauncherWouldRefuse) {
  Cli cli;
  std::ofstream(cli.dir.path() / "s.yaml") << "name: s\ndefaults: {model: llama-10m, seq_length: 64}\n"
                                              "launch: {launcher: slurm, slurm: {partitoin: gpu}}\n";
  const auto output = cli.Run({"plan", "s.yaml"});
  EXPECT_EQ(output.status.exit_code, 2);
  EXPECT_THAT(output.err, HasSubstr("there is no setting 'partitoin'"));
}

}  // namespace
}  // namespace ridgeline::cli
