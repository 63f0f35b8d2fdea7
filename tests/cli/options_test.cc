// The meaning of -o and --to, in every command that has them.
#include "cli/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/error.h"
#include "cli/commands.h"
#include "tests/cli/cli.h"

namespace ridgeline::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

TEST(Output, MeansTheSameInEveryCommand) {
  for (const Command& command : Commands()) {
    CLI::App program;
    CLI::App* self = program.add_subcommand(std::string(command.name));
    const Action action = command.declare(*self);
    std::vector<const CLI::App*> apps = {self};
    for (const CLI::App* inner : self->get_subcommands({})) apps.push_back(inner);
    for (const CLI::App* app : apps) {
      for (const CLI::Option* option : app->get_options()) {
        const bool is_form = option->check_sname("o") || option->check_lname("format") || option->check_lname("output");
        EXPECT_EQ(is_form, option->get_name() == "--format") << app->get_name() << " " << option->get_name(false, true);
        if (is_form) {
          EXPECT_TRUE(option->check_sname("o")) << app->get_name();
          EXPECT_THAT(option->get_type_name(), HasSubstr("json")) << app->get_name();
        }
        if (option->check_lname("to")) {
          EXPECT_TRUE(option->get_type_name() == "FILE" || option->get_type_name() == "DIR") << app->get_name();
        }
        EXPECT_FALSE(option->check_lname("output-dir")) << app->get_name();
      }
    }
  }
}

TEST(Output, TheFormIsWhatIsSaidElseTheFilesEndingElseTheFirst) {
  EXPECT_EQ(FormOf("csv", "a.json", {"md", "json", "csv"}), "csv");
  EXPECT_EQ(FormOf("", "a/b.JSON", {"md", "json"}), "json");
  EXPECT_EQ(FormOf("", "", {"md", "json"}), "md");
  for (const char* to : {"a.txt", "json", "a/.json/b"}) {
    try {
      FormOf("", to, {"md", "json"});
      ADD_FAILURE() << to;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kUsage);
      EXPECT_EQ(std::string(e.what()),
                std::string("the ending of '") + to +
                    "' does not name a format\n  name the format with -o: md, json; or change the ending");
    }
  }
}

TEST(Output, AReportAndAnExportArePrintedOrWritten) {
  Cli cli;
  ASSERT_EQ(cli.Run({"run", cli.WriteSweep(1, "ok")}).status.exit_code, 0);
  EXPECT_THAT(cli.Run({"report", "activation-checkpointing"}).out, StartsWith("# "));
  EXPECT_THAT(cli.Run({"report", "activation-checkpointing", "-o", "html"}).out, StartsWith("<!DOCTYPE html>"));
  EXPECT_EQ(cli.Run({"report", "activation-checkpointing", "--to", "page.txt", "-o", "html"}).out,
            "page.txt: 1 run in 1 panel: 1 ok.\n");
  EXPECT_THAT(ReadFile(cli.dir.path() / "page.txt"), StartsWith("<!DOCTYPE html>"));
  EXPECT_EQ(cli.Run({"report", "activation-checkpointing", "--to", "page.txt"}).err,
            "ridgeline: the ending of 'page.txt' does not name a format\n"
            "  name the format with -o: md, html, csv, json, text; or change the ending\n");
  WriteFile(cli.dir.path() / "gate.json", R"({"head": "h", "findings": [{"metric": "result", "answer": "MISSING"}]})");
  EXPECT_THAT(cli.Run({"report", "regression", "--input", "gate.json"}).out,
              HasSubstr("1 finding in 1 panel: 1 MISSING."));
  WriteFile(cli.dir.path() / "gate.json", "{");
  const auto refused = cli.Run({"report", "regression", "--input", "gate.json"});
  EXPECT_EQ(refused.status.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("gate.json"));
  EXPECT_THAT(cli.Run({"report", "--list"}).out, StartsWith("report "));
  EXPECT_THAT(cli.Run({"report", "--list", "-o", "csv"}).out, StartsWith("report,title,folder\r\nactivation-"));
  EXPECT_EQ(ParseJson(cli.Run({"report", "--list", "-o", "json"}).out, "").at(0).at("report"),
            "activation-checkpointing");
  EXPECT_EQ(cli.Run({"report", "--list", "-o", "html"}).err,
            "ridgeline: report: --list has no form html\n  say -o md, csv or json, or nothing\n");
  EXPECT_THAT(cli.Run({"db", "export"}).out, StartsWith("point_id,result,"));
  const std::string lines = cli.Run({"db", "export", "-o", "jsonl"}).out;
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 1) << "a measurement a line";
  const Json line = ParseJson(lines, "a line");
  EXPECT_EQ(line.at("status"), "ok");
  for (const char* column : {"metrics", "spec", "setup", "environment", "evidence"}) {
    EXPECT_TRUE(line.at(column).is_object()) << column;
  }
  EXPECT_TRUE(line.at("all_steps_ns").is_array());
  EXPECT_TRUE(line.contains("mfu"));
  EXPECT_TRUE(line.contains("energy_j_per_token"));
  EXPECT_EQ(cli.Run({"db", "export", "--to", "all.jsonl"}).out, "all.jsonl: 1 measurement of ridgeline.db\n");
  EXPECT_EQ(ReadFile(cli.dir.path() / "all.jsonl"), lines);
  const auto help = cli.Run({"help"});
  EXPECT_THAT(help.out, HasSubstr("-o FORMAT is the form of the output, and --to PATH the file"));
  EXPECT_THAT(help.err, IsEmpty());
}

}  // namespace
}  // namespace ridgeline::cli
