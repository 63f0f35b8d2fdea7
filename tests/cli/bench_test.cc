// `ridgeline bench`: the sweep that it makes of its arguments.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/cli.h"

namespace ridgeline::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Bench, RunsEveryCombinationAsASweepThatIsKept) {
  Cli cli;
  std::vector<std::string> command = {"bench",   "llama-5m", "--seq-length",   "32", "--batch-size", "1,2",
                                      "--steps", "1",        "--warmup-steps", "0",  "--precision",  "bf16"};
  const auto first = cli.Run(command);
  ASSERT_EQ(first.status.exit_code, 0) << first.out << first.err;
  EXPECT_THAT(first.out, HasSubstr("2 ok"));
  const std::string name = "bench-llama-5m-batch_size=1,2-precision=bf16-seq_length=32-steps=1-warmup_steps=0";
  const auto file = cli.dir.path() / (name + ".yaml");
  EXPECT_THAT(first.out, HasSubstr("sweep file: " + name + ".yaml\n"));
  EXPECT_EQ(ReadFile(file), "# Made by `ridgeline bench`. Run it with `ridgeline run`.\nname: \"" + name +
                                "\"\ndefaults:\n  model: llama-5m\n  precision: bf16\n  seq_length: 32\n  steps: 1\n"
                                "  warmup_steps: 0\nmatrix:\n  batch_size: [1, 2]\n");
  std::swap(command[3], command[5]);
  std::swap(command[2], command[4]);
  const auto again = cli.Run(command);
  EXPECT_EQ(again.status.exit_code, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr("2 were already measured"));
  command[3] = "1,2,3";
  const auto more = cli.Run(command);
  EXPECT_EQ(more.status.exit_code, 0) << more.err;
  EXPECT_THAT(more.out, HasSubstr("2 were already measured"));
  ExpectOneResultAPoint(cli, 3);
  const auto report = cli.Run({"report", "batch-scaling", "--sweep", name, "-o", "csv"});
  EXPECT_EQ(report.status.exit_code, 0) << report.err;
  EXPECT_THAT(report.out, HasSubstr("llama-5m"));
  EXPECT_THAT(cli.Run({"status", file}).out, HasSubstr("ok                  2           2\n"));
  WriteFile(file, "name: other\n");
  command[3] = "1,2";
  const auto changed = cli.Run(command);
  EXPECT_EQ(changed.status.exit_code, 2);
  EXPECT_THAT(changed.err, HasSubstr("was changed after an earlier call with these arguments"));
}

TEST(Bench, TakesAGlobalBatch) {
  Cli cli;
  const auto bench = cli.Run({"bench", "llama-5m", "--batch-size", "1,2", "--global-batch", "4", "--dry-run"});
  EXPECT_EQ(bench.status.exit_code, 0) << bench.err;
  EXPECT_THAT(bench.out, AllOf(HasSubstr("batch_size=1, grad_accumulation=4\n"),
                               HasSubstr("batch_size=2, grad_accumulation=2\n")));
}

TEST(Bench, WrongArgumentsAreToldAndLeaveNoFile) {
  Cli cli;
  const auto expect = [&](std::vector<std::string> arguments, const std::string& message) {
    arguments.insert(arguments.begin(), "bench");
    const auto said = cli.Run(arguments);
    EXPECT_EQ(said.status.exit_code, 2) << said.out;
    EXPECT_THAT(said.err, HasSubstr(message));
    EXPECT_THAT(said.err, Not(HasSubstr("\x1b")));
  };
  expect({}, "model is required");
  expect({"llama-5m", "--bath-size", "1"}, "did you mean '--batch-size'?");
  expect({"llama-5m", "--batch-size", "1,x"}, "batch_size");
  expect({"llama-5m", "--precision", "bf61"}, "did you mean 'bf16'?");
  expect({"llama-5m", "--checkpoint-dir", "a,b"}, "--checkpoint-dir takes one value, not a,b");
  expect({"lama-5m"}, "llama-5m");
  expect({"../a\n: \x1b[1m{"}, "model");
  expect({"llama-5m", "--batch-size", "1]\nlaunch: {trainer: [sh]}\nx: [1"}, "batch_size");
  for (const auto& entry : std::filesystem::directory_iterator(cli.dir.path())) {
    EXPECT_NE(entry.path().extension(), ".yaml") << entry.path();
  }
}

}  // namespace
}  // namespace ridgeline::cli
