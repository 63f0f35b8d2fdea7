// The table that `ridgeline run` prints last.
#include "cli/result_table.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/files.h"
#include "store/sqlite.h"
#include "tests/cli/cli.h"

namespace ridgeline::cli {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ResultTable, HasTheSpreadOfRepeats) {
  Cli cli;
  const auto sweep = cli.dir.path() / "sweep.yaml";
  const auto write = [&](int repeats) {
    WriteFile(sweep, fmt::format("name: test\ndefaults: {{model: llama-5m, seq_length: 32}}\nmatrix: {{seed: [1]}}\n"
                                 "measure: {{warmup_steps: 1, steps: 4, repeats: {}}}\n",
                                 repeats));
  };
  write(3);
  EXPECT_THAT(cli.Run({"run", sweep}).out, ContainsRegex("\n +1  ok +[0-9.]+[KM]? ± [0-9.]+[KM]? "));
  write(1);
  EXPECT_THAT(cli.Run({"run", sweep}).out, Not(HasSubstr("±"))) << "of one run nothing is known of how runs differ";
}

TEST(ResultTable, SaysWhichPointsWereEmulated) {
  Cli cli;
  const auto sweep = cli.dir.path() / "sweep.yaml";
  WriteFile(sweep,
            "name: test\ndefaults: {model: llama-5m, seq_length: 32}\nmatrix: {precision: [bf16, fp8]}\n"
            "measure: {warmup_steps: 0, steps: 1}\n");
  const auto run = cli.Run({"run", sweep});
  ASSERT_EQ(run.status.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, ContainsRegex("RSS +run +note\n"));
  EXPECT_THAT(run.out, ContainsRegex("\nfp8 [^\n]* emulated\n"));
  EXPECT_THAT(run.out, Not(ContainsRegex("\nbf16 [^\n]* emulated\n")));
  WriteFile(sweep,
            "name: other\ndefaults: {model: llama-5m, seq_length: 32}\nmatrix: {precision: [bf16]}\n"
            "measure: {warmup_steps: 0, steps: 1}\n");
  EXPECT_THAT(cli.Run({"run", sweep}).out, Not(HasSubstr("note"))) << "where nothing was emulated, nothing is said";
}

TEST(ResultTable, HasWhatWasPredictedBesideWhatWasMeasured) {
  Cli cli;
  WriteFile(cli.dir.path() / "here.yaml", R"(name: here
about: two cores
gpu: none
sources: {me: assumed}
peaks: {fp32: {value: 100 GFLOP/s, source: me}, bf16: {value: 200 GFLOP/s, source: me}}
memory: {size: {value: 8 GB, source: me}, bandwidth: {value: 20 GB/s, source: me}}
chip: {multiprocessors: {value: 2, source: me}, launch: {value: 1 us, source: me}}
)");
  const auto sweep = cli.dir.path() / "sweep.yaml";
  WriteFile(sweep,
            "name: test\ndefaults: {model: llama-5m, seq_length: 32}\nmatrix: {seed: [1]}\n"
            "measure: {warmup_steps: 0, steps: 1}\n");
  EXPECT_THAT(cli.Run({"run", sweep}).out, Not(HasSubstr("predicted"))) << "where nothing was, nothing is said";
  ASSERT_TRUE(cli.Run({"predict", sweep, "--device", "here", "--db", "ridgeline.db"}).status.ok());
  EXPECT_THAT(cli.Run({"run", sweep}).out,
              AllOf(ContainsRegex("predicted tokens/s +predicted-measured\n"), ContainsRegex(" [-+][0-9.]+%\n")));
}

TEST(ResultTable, SaysWhatPointsTookOfADevice) {
  Cli cli;
  const auto sweep = cli.dir.path() / "sweep.yaml";
  const auto write = [&](const std::string& name, const std::string& modes) {
    WriteFile(sweep, fmt::format("name: {}\ndefaults: {{model: llama-5m, seq_length: 32, device: cuda, gpu: h100}}\n"
                                 "matrix: {{seed: [0, 1]}}\nmeasure: {{warmup_steps: 0, steps: 1}}\n"
                                 "launch: {{trainer: [{}, {}]}}\n",
                                 name, testing::FakeProgram("fake_trainer").string(), modes));
  };
  write("taken", "takes=25000000, ok");
  const auto run = cli.Run({"run", sweep});
  ASSERT_EQ(run.status.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, ContainsRegex("\nseed +status +tokens/s .* +planned +device peak +RSS +run\n"));
  EXPECT_THAT(run.out, ContainsRegex("\n +0 +ok +100 .* 100 +25.0 MB +[0-9.]+ [kM]B +1\n"));
  EXPECT_THAT(run.out, ContainsRegex("\n +1 +ok +100 .* 100 {20,}[0-9.]+ [kM]B +2\n")) << "it says nothing of it";
  write("untold", "ok");
  EXPECT_THAT(cli.Run({"run", sweep}).out, ContainsRegex("\nseed +status +tokens/s .* +planned +RSS +run\n"))
      << "where no point says it, there is no such column";
}

// `db delete --run` and the addresses of `serve` take that number.
TEST(ResultTable, NumbersItsRuns) {
  Cli cli;
  const auto sweep = cli.WriteSweep(2, "ok");
  EXPECT_THAT(cli.Run({"run", sweep}).out, ContainsRegex("\nseed [^\n]* run\n +1 [^\n]* 1\n +2 [^\n]* 2\n"));
  ASSERT_EQ(cli.Run({"db", "delete", "--run", "1", "--yes"}).status.exit_code, 0);
  EXPECT_THAT(cli.Run({"run", sweep}).out, ContainsRegex("\n +1 [^\n]* 3\n +2 [^\n]* 2\n")) << "measured again";
  EXPECT_THAT(cli.Run({"report", "sweep"}).out, ContainsRegex("[|] Run [|][^\n]*\n[^\n]*\n[^\n]*[|] 3 [|]"));
}

TEST(ResultTable, MarksDisturbedFiguresOrSaysItOnceOfAll) {
  constexpr const char* kMark = "\xE2\x80\xA0";
  Cli cli;
  const auto sweep = cli.WriteSweep(2, "ok");
  cli.Run({"run", sweep});
  // Whatever else this machine does meanwhile.
  const auto after = [&](const std::string& sql) {
    store::Database(cli.dir / "ridgeline.db", store::Database::Access::kReadWrite).Execute(sql);
    return cli.Run({"run", sweep}).out;
  };
  const std::string one = after("UPDATE results SET cores_others_share = iif(number = 1, 0.5, 0)");
  EXPECT_THAT(one, ContainsRegex(fmt::format("\n +1 +ok +100 {}[^\n]*\n +2 +ok +100 +640 ms", kMark)));
  EXPECT_THAT(one, HasSubstr("others held more than 20 % of the cores: measure it again"));
  const std::string all = after("UPDATE results SET cores_others_share = 0.5");
  EXPECT_THAT(all, HasSubstr(fmt::format("tokens/s {} ", kMark)));
  EXPECT_THAT(all, Not(HasSubstr(fmt::format("100 {}", kMark))));
  EXPECT_THAT(all, HasSubstr(fmt::format("{}: in every run others held more than 20 % of the cores", kMark)));
  // A run that failed has no figure.
  const std::string failed = after("UPDATE results SET status = 'crashed' WHERE number = 2");
  EXPECT_THAT(failed, ContainsRegex(fmt::format("\n +1 +ok +100 {}", kMark)));
  EXPECT_THAT(failed, Not(ContainsRegex(fmt::format("crashed[^\n]*{}", kMark))));
}

}  // namespace
}  // namespace ridgeline::cli
