// `ridgeline calibrate`: the machine measured, for as short as it lets itself be, and steps predicted by that.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>

#include "base/json.h"
#include "tests/cli/cli.h"

namespace ridgeline {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(CalibrateCommand, WritesAnEntryThatPredicts) {
  Cli cli;
  std::ofstream(cli.dir / "s.yaml") << "name: s\ndefaults: {model: llama-5m, seq_length: 32, precision: bf16}\n"
                                       "matrix: {ranks: [1, 2]}\n"
                                       "launch: {trainer: ["
                                    << (Program().parent_path() / "ridgeline-train").string() << ", --profile]}\n";
  const auto made = cli.Run({"calibrate", "--to", "here.yaml", "--seconds", "1", "--ranks", "2", "--busy"});
  ASSERT_TRUE(made.status.ok()) << made.out << made.err;
  EXPECT_THAT(made.out,
              AllOf(HasSubstr("1 rank: "), HasSubstr("2 ranks: "), HasSubstr("steps predicted from the others"),
                    HasSubstr("programs were left out for want of time")));
  const auto shown = cli.Run({"devices", "here", "--devices", "."});
  ASSERT_TRUE(shown.status.ok()) << shown.err;
  EXPECT_THAT(shown.out, AllOf(HasSubstr("measured on 20"), HasSubstr("peaks.bf16"), HasSubstr("memory.bandwidth")));
  const auto predicted = cli.Run({"predict", "s.yaml", "--device", "here", "--devices", ".", "-o", "json"});
  ASSERT_TRUE(predicted.status.ok()) << predicted.err;
  for (const Json& row : ParseJson(predicted.out, "ridgeline predict")) {
    EXPECT_GT(row.at("step_ns").get<double>(), 0);
    EXPECT_LT(row.at("step_low_ns"), row.at("step_ns"));
    EXPECT_EQ(row.at("ranks") == 1, row.at("communication_ns") == 0) << row;
    EXPECT_NEAR(row.at("machine_hours").get<double>(), row.at("run_s").get<double>() / 3600, 1e-9) << "one machine";
  }
  const auto kept = cli.Run({"predict", "s.yaml", "--device", "here", "--devices", ".", "--db", "ridgeline.db"});
  ASSERT_TRUE(kept.status.ok()) << kept.err;
  const auto run = cli.Run({"run", "s.yaml"});
  ASSERT_TRUE(run.status.ok()) << run.err;
  const auto audit = cli.Run({"report", "prediction-audit", "-o", "json"});
  ASSERT_TRUE(audit.status.ok()) << audit.err;
  size_t steps = 0;
  std::set<std::string> ops;
  const Json page = ParseJson(audit.out, "the audit");
  for (const Json& row : page.at("rows")) {
    if (row.at("op_share_percent").is_null()) {
      ++steps;
      continue;
    }
    ops.insert(row.at("run").get<std::string>());
    EXPECT_GT(row.at("step_median_ns").get<double>(), 0) << row;
    EXPECT_GT(row.at("predicted_ns").get<double>(), 0) << row;
  }
  EXPECT_EQ(steps, 2U) << "what is measured stands beside what was said";
  EXPECT_THAT(ops, ::testing::IsSupersetOf({"gemm", "attention_forward", "adam"}))
      << "and by op, where the trainer profiles";
}

TEST(CalibrateCommand, RefusesNamesThatCannotBe) {
  Cli cli;
  const auto other = cli.Run({"calibrate", "--to", "here.yaml", "--name", "there"});
  EXPECT_EQ(other.status.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("here.yaml has to be called there.yaml"));
  EXPECT_EQ(cli.Run({"calibrate", "--name", "../x"}).status.exit_code, 2);
  const auto gpu = cli.Run({"calibrate", "--to", "here.yaml", "--gpu", "h10"});
  EXPECT_EQ(gpu.status.exit_code, 2);
  EXPECT_THAT(gpu.err, HasSubstr("did you mean 'h100'"));
}

}  // namespace
}  // namespace ridgeline
