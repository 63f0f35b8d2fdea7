// Text from any source, in every place that shows some and in every form: none of it controls a terminal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/text.h"
#include "store/sqlite.h"
#include "tests/cli/cli.h"

namespace ridgeline::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Clears a screen in two ways, rings, deletes, changes directions, ends lines in four ways, is not UTF-8, is a formula,
// a tag and a row of a table, and has words on a line of its own.
const std::string& Hostile() {
  static const std::string text =
      "=1+1|\x1b[2J\xC2\x9B"
      "2J\x07\x08\x7f\xE2\x80\xAE\xE2\x81\xA6\xE2\x80\x8F\xE2\x80\xA8\xE2\x80\xA9\xC2\x85\r\xff\xfe</td><b>F\nFORGED";
  return text;
}

// The same if it must be UTF-8.
std::string HostileUtf8() { return ValidUtf8(Hostile()); }

void ExpectHarmless(const std::string& text, const std::string& what) {
  EXPECT_EQ(EscapeControls(text, "\n\t"), text) << what;
}

void ExpectHarmless(const Cli::Output& output, const std::string& what) {
  ExpectHarmless(output.out, what + ": its output");
  ExpectHarmless(output.err, what + ": its remarks");
}

// No line begins like the program's own output. What a user types is the user's own.
void ExpectNothingForged(const Cli::Output& output, const std::string& what) {
  EXPECT_EQ(output.err.find("\nFORGED"), std::string::npos) << what;
}

class HostileTest : public ::testing::Test {
 protected:
  // Two points that ran. Afterwards every text in the database is made hostile. The sweep's name is `name`.
  void Fill() {
    ASSERT_EQ(cli_.Run({"run", cli_.WriteSweep(2, "ok")}).status.exit_code, 0);
    store::Database database(cli_.dir.path() / "ridgeline.db", store::Database::Access::kReadWrite);
    const auto set = [&](const std::string& sql, const std::string& text) {
      store::Statement statement = database.Prepare(sql);
      statement.Bind(1, text);
      statement.Run();
    };
    database.Execute("PRAGMA foreign_keys = OFF");
    const std::string texts = DumpJson({{HostileUtf8(), HostileUtf8()}});
    const std::string setup = DumpJson({{"trainer", {HostileUtf8()}}});
    for (const char* column :
         {"sweeps.name",         "jobs.sweep",         "sweep_points.sweep",   "sweeps.description",
          "sweeps.file",         "sweeps.text",        "sweeps.campaign",      "jobs.campaign",
          "results.campaign",    "jobs.launcher",      "jobs.native_id",       "jobs.job_dir",
          "results.message",     "results.hint",       "results.device_name",  "results.communicator_name",
          "results.command",     "results.provenance", "environments.machine", "environments.version",
          "points.model",        "points.data",        "points.precision",     "points.checkpointing",
          "points.communicator", "points.device"}) {
      const std::string name(column);
      const size_t dot = name.find('.');
      set("UPDATE " + name.substr(0, dot) + " SET " + name.substr(dot + 1) + " = ?", Hostile());
    }
    for (const char* column : {"sweeps", "jobs", "results"}) {
      set(std::string("UPDATE ") + column + " SET setup = ?", setup);
    }
    for (const char* column : {"jobs", "results"}) set(std::string("UPDATE ") + column + " SET evidence = ?", texts);
    set("UPDATE environments SET environment = ?", texts);
    database.Execute("UPDATE results SET status = 'crashed' WHERE number = 1; UPDATE jobs SET state = 'running'");
  }

  std::vector<std::string> Names(const std::string& sql) {
    std::vector<std::string> names;
    for (const auto& row : cli_.OpenStore().Query(sql).rows) names.push_back(CellText(row.at(0)));
    return names;
  }

  Cli cli_;
};

TEST_F(HostileTest, NothingInTheDatabaseReachesATerminal) {
  Fill();
  std::vector<std::vector<std::string>> commands = {{"status"},
                                                    {"status", "-o", "json"},
                                                    {"status", Hostile().c_str()},
                                                    {"cancel", "nobody"},
                                                    {"cancel", Hostile().c_str()},
                                                    {"db", "check"},
                                                    {"report", "--list"},
                                                    {"query", "SELECT 1 AS \"" + Hostile() + "\""},
                                                    {"report", "activation-checkpointing", "--campaign", "nobody"},
                                                    {"report", "activation-checkpointing", "--sweep", "nobody"}};
  for (const std::string& table : Names("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")) {
    for (const char* form : {"text", "md", "csv", "json", "jsonl"}) {
      commands.push_back({"query", "SELECT * FROM " + table, "-o", form});
    }
  }
  for (const char* form : {"csv", "json", "jsonl", "sql"}) commands.push_back({"db", "export", "-o", form});
  for (const char* report : {"activation-checkpointing", "convergence", "precision", "scaling"}) {
    for (const char* form : {"md", "html", "csv", "json", "text"})
      commands.push_back({"report", report, "-o", form, "--all"});
  }
  size_t showed = 0;
  for (const auto& command : commands) {
    const auto output = cli_.Run(command);
    const std::string what = PrintableLine(Join(command, " "));
    ExpectHarmless(output, what);
    ExpectNothingForged(output, what);
    showed += output.out.find("FORGED") == std::string::npos ? 0 : 1;
    if (output.status.ok() && std::count(command.begin(), command.end(), "json") > 0) {
      EXPECT_NO_THROW(ParseJson(output.out, what));
    }
    if (std::count(command.begin(), command.end(), "csv") == 0) {
      EXPECT_EQ(output.out.find("\nFORGED"), std::string::npos) << what;
    }
    const bool marked =
        std::count(command.begin(), command.end(), "md") + std::count(command.begin(), command.end(), "html") > 0;
    if (marked) {
      EXPECT_THAT(output.out, Not(HasSubstr("<b>F"))) << what;
    }
  }
  EXPECT_GT(showed, 30U) << "hardly any of it was shown at all";
}

// A sweep that contains it, a trainer that prints it, and a result that holds it: while it runs, and in what it leaves.
TEST_F(HostileTest, NothingThatARunMeetsReachesATerminal) {
  const auto file = cli_.dir.path() / "sweep.yaml";
  const auto trainer = cli_.dir.path() / "trainer";
  const std::string in_json = Json(HostileUtf8()).dump(-1, ' ', /*ensure_ascii=*/true);  // in the form for YAML
  std::ofstream(trainer) << "#!/bin/sh\nwhile [ $# -gt 1 ]; do [ \"$1\" = --result ] && result=$2; shift; done\n"
                            "printf '\\033[2J\\233\\377\\nFORGED\\n'\n"
                            "printf '%s' \"$HOSTILE\" >&2\n"
                            "[ \"$SAYS\" = log ] && exit 3\n"
                            "cat \"$0.json\" >$result; exit 3\n";
  std::filesystem::permissions(trainer, std::filesystem::perms::owner_all);
  std::ofstream(trainer.string() + ".json") << DumpJson({{"version", 1},
                                                         {"status", "crashed"},
                                                         {"message", HostileUtf8()},
                                                         {"hint", HostileUtf8()},
                                                         {"device", HostileUtf8()},
                                                         {"evidence", {{HostileUtf8(), HostileUtf8()}}},
                                                         {"environment", {{HostileUtf8(), HostileUtf8()}}}});
  for (const char* says : {"log", "result"}) {
    std::ofstream(file) << "name: test " << says << "\ndescription: " << in_json
                        << "\ndefaults: {model: llama-10m, seq_length: 64}\nlaunch:\n  trainer: [" << trainer << ", "
                        << in_json << "]\n  environment: {SAYS: " << says << ", HOSTILE: " << in_json
                        << "}\nreport: [activation-checkpointing]\n";
    for (const char* form : {"text", "md", "csv", "json", "jsonl"}) {
      ExpectHarmless(cli_.Run({"plan", file, "-o", form}), std::string("plan ") + form);
    }
    const auto run = cli_.Run({"run", file});
    EXPECT_EQ(run.status.exit_code, 1) << run.out << run.err;
    ExpectHarmless(run, std::string("run, and it says it in its ") + says);
    ExpectNothingForged(run, "run");
    EXPECT_THAT(run.out, HasSubstr("crashed")) << run.err;
    for (const char* end : {"md", "html", "csv"}) {
      ExpectHarmless(ReadFile(cli_.dir.path() / "ridgeline-out" / (std::string("activation-checkpointing.") + end)),
                     end);
    }
  }
  ExpectHarmless(cli_.Run({"status"}), "status");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(cli_.dir.path() / "ridgeline-out/jobs")) {
    if (entry.path().filename() != "job.json") continue;
    std::filesystem::remove(entry.path().parent_path() / "results.log");
    ExpectHarmless(cli_.Run({"exec", entry.path(), "--print-results"}), "exec");
  }
}

TEST_F(HostileTest, NothingOnACommandLineOrInAFileReachesATerminal) {
  const std::string name = "s\x1b[2J\xE2\x80\xAE\n.yaml";
  std::ofstream(cli_.dir.path() / name) << "name: \"\\x1b[2J\"\n\"\\u202e\\n\": 1\nlaunch: {\"\\x9b\": \"\\e\"}\n"
                                           "defaults: {model: \"a\\nFORGED\", batch_size: \"\\x1b\"}\n";
  for (const std::vector<std::string>& command : {std::vector<std::string>{"plan", name},
                                                  {"run", name},
                                                  {"render", name},
                                                  {"plan", name + "x"},
                                                  {name},
                                                  {"plan", name, "--memory", Hostile()},
                                                  {"plan", name, "-o", Hostile()},
                                                  {"report", Hostile()},
                                                  {"query", Hostile()},
                                                  {"exec", Hostile()},
                                                  {"collect", Hostile()},
                                                  {"status", "--db", Hostile()},
                                                  {"help", Hostile()},
                                                  {"db", "merge", Hostile()},
                                                  {"run", "--campaign", Hostile(), name}}) {
    const auto output = cli_.Run(command);
    EXPECT_NE(output.status.exit_code, 0);
    ExpectHarmless(output, PrintableLine(Join(command, " ")));
    EXPECT_THAT(output.err, HasSubstr("ridgeline: "));
  }
}

}  // namespace
}  // namespace ridgeline::cli
