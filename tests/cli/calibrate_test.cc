// `ridgeline calibrate`: measures the machine for the shortest possible time, and predicts steps from that.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "tests/cli/cli.h"

namespace ridgeline::cli {
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
  if (made.err.find("only a busy machine explains") != std::string::npos) GTEST_SKIP() << made.err;
  ASSERT_TRUE(made.status.ok()) << made.out << made.err;
  EXPECT_THAT(made.out,
              AllOf(HasSubstr("1 rank: "), HasSubstr("2 ranks: "), HasSubstr("steps predicted from the others"),
                    HasSubstr("programs were left out for lack of time")));
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
  // A run that others on this machine disturbed has no ops.
  if (cli.Count("SELECT count(*) FROM runs WHERE provenance = 'measured' AND disturbed_by_others IS NULL") > 0) {
    EXPECT_THAT(ops, ::testing::IsSupersetOf({"gemm", "attention_forward", "adam"}))
        << "and by op, where the trainer profiles";
  }
}

#ifdef RIDGELINE_EMULATED_TRAINER
// On the emulated machine, with a trainer in place of the CUDA one.
TEST(CalibrateCommand, CalibratesAGpu) {
  Cli cli;
  const std::filesystem::path bin = cli.dir / "bin";
  std::filesystem::create_directory(bin);
  std::filesystem::copy_file(Program(), bin / "ridgeline");
  std::filesystem::create_symlink(RIDGELINE_EMULATED_TRAINER, bin / "ridgeline-train");
  std::filesystem::create_directory_symlink(Program().parent_path() / "devices", bin / "devices");
  const auto run = [&](std::vector<std::string> arguments) {
    for (const char* file : {"out", "err"}) std::filesystem::remove(cli.dir / file);
    arguments.insert(arguments.begin(), {(bin / "ridgeline").string()});
    SpawnOptions options;
    options.work_dir = cli.dir.path();
    options.stdout_file = cli.dir / "out";
    options.stderr_file = cli.dir / "err";
    Child child = Child::Spawn(arguments, options);
    return cli.Finish(child);
  };
  const auto made = run({"calibrate", "--gpu", "h200", "--to", "here.yaml", "--seconds", "1", "--busy"});
  ASSERT_TRUE(made.status.ok()) << made.out << made.err;
  EXPECT_THAT(made.out, HasSubstr("1 rank: "));
  const auto shown = run({"devices", "here", "--devices", "."});
  ASSERT_TRUE(shown.status.ok()) << shown.err;
  EXPECT_THAT(shown.out,
              AllOf(HasSubstr("gpu: h200"), HasSubstr("peaks.fp8"), HasSubstr("measured on 20"), HasSubstr("NVIDIA")))
      << "what was measured, on top of what the catalogue says";
  // A step that was part of the calibration, and one that was not.
  std::ofstream(cli.dir / "s.yaml")
      << "name: s\ndefaults: {family: llama, layers: 2, hidden: 32, heads: 2, kv_heads: 2, ffn: 64, vocab: 64,\n"
         "  seq_length: 16, precision: bf16, device: cuda, gpu: h200}\nmatrix: {batch_size: [1, 2]}\n";
  std::vector<Json> steps;
  for (const std::string device : {"here", "h200"}) {
    const auto predicted = run({"predict", "s.yaml", "--device", device, "--devices", ".", "-o", "json"});
    ASSERT_TRUE(predicted.status.ok()) << predicted.err;
    steps.push_back(ParseJson(predicted.out, "ridgeline predict"));
    ASSERT_EQ(steps.back().size(), 2U);
  }
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_GT(steps[0][i].at("step_ns").get<double>(), 10 * steps[1][i].at("step_ns").get<double>())
        << "threads one by one are no H200's";
    EXPECT_THAT(steps[1][i].at("basis").get<std::string>(), HasSubstr("extrapolated"));
  }
  EXPECT_THAT(steps[0][0].at("basis").get<std::string>(), HasSubstr("calibrated")) << "all of its calls were measured";
}
#endif

TEST(CalibrateCommand, RefusesNamesThatCannotBe) {
  Cli cli;
  const auto other = cli.Run({"calibrate", "--to", "here.yaml", "--name", "there"});
  EXPECT_EQ(other.status.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("here.yaml must be named there.yaml"));
  EXPECT_EQ(cli.Run({"calibrate", "--name", "../x"}).status.exit_code, 2);
  const auto gpu = cli.Run({"calibrate", "--to", "here.yaml", "--gpu", "h10"});
  EXPECT_EQ(gpu.status.exit_code, 2);
  EXPECT_THAT(gpu.err, HasSubstr("did you mean 'h100'"));
}

}  // namespace
}  // namespace ridgeline::cli
