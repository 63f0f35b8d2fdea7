// Sweeps with trainers that definitions describe, such as PyTorch's, from end to end on this machine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "base/files.h"
#include "base/process.h"
#include "tests/cli/cli.h"

namespace ridgeline::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kTorch = RIDGELINE_SOURCE_DIR "/tests/trainers/torch";

std::filesystem::path WriteText(const Cli& cli, const std::string& name, const std::string& text) {
  auto file = cli.dir.path() / name;
  WriteFile(file, text);
  return file;
}

// A definition of a script, in the folder of the sweep.
void WriteMine(const Cli& cli, const std::string& script, const std::string& more) {
  WriteText(cli, "mine.sh", script);
  WriteText(
      cli, "mine.yaml",
      fmt::format("name: mine\nabout: a script\nversion: \"1\"\ntested: log\nresult: patterns\n"
                  "command: [/bin/sh, '{}', '{{{{layers}}}}', '{{{{speed}}}}']\nprocesses: one\n"
                  "fields: {{speed: {{type: integer, default: 5, min: 1}}}}\n{}"
                  "metrics:\n"
                  "  - {{name: step_time, regex: 'step (?P<step>\\d+): (?P<value>\\S+) ms', unit: ms, take: series}}\n"
                  "  - {{name: version, regex: '^mine (\\S+)'}}\n",
                  (cli.dir.path() / "mine.sh").string(), more));
}

constexpr const char* kAnySequence = "supports: {seq_length: any}\n";
constexpr const char* kThreeSteps = "echo mine 2.1; for i in 1 2 3; do echo \"step $i: $2 ms\"; done\n";
constexpr const char* kSweep =
    "name: test\ndefaults: {model: llama-5m, seq_length: 32}\nmeasure: {warmup_steps: 0, steps: 3}\n";

TEST(DefinedTrainers, OneThatFailsOnEveryPointStopsTheSweepAndOneThatDoesNotGoesOn) {
  Cli cli;
  WriteMine(cli, "echo \"Traceback (most recent call last):\n  File \\\"t.py\\\"\nKeyError: 'lr'\"; exit 1\n",
            kAnySequence);
  const auto sweep = WriteText(cli, "sweep.yaml",
                               std::string(kSweep) +
                                   "matrix: {trainer: [mine], speed: [1, 2, 3, 4, 5, 6, 7, 8]}\n"
                                   "launch: {max_parallel: 1}\n");
  const auto run = cli.Run({"run", sweep});
  EXPECT_EQ(run.status.exit_code, 1);
  EXPECT_THAT(run.err,
              HasSubstr("3 of 8 points have no result; it stopped when each of the first 5 points ended alike, "
                        "crashed: KeyError: 'lr'"));
  EXPECT_THAT(run.err, HasSubstr("--retry failed"));
  WriteMine(cli, "[ $2 = 1 ] && exit 1\n" + std::string(kThreeSteps), kAnySequence);
  const auto mended = cli.Run({"run", sweep, "--retry", "failed"});
  EXPECT_EQ(mended.status.exit_code, 1);
  EXPECT_THAT(mended.out, HasSubstr("7 ok"));
}

TEST(DefinedTrainers, TheirOwnFieldsAreAxesColumnsAndPartOfWhatAPointIs) {
  Cli cli;
  WriteMine(cli, kThreeSteps, kAnySequence);
  const auto sweep =
      WriteText(cli, "sweep.yaml", std::string(kSweep) + "matrix: {trainer: [ridgeline, mine], speed: [5, 10]}\n");
  const auto plan = cli.Run({"plan", sweep});
  EXPECT_EQ(plan.status.exit_code, 0) << plan.err;
  EXPECT_THAT(plan.out, HasSubstr("5.38M                       not_predicted"));
  EXPECT_THAT(plan.err, HasSubstr("2 of a trainer whose memory is not predicted"));
  const auto run = cli.Run({"run", sweep});
  EXPECT_EQ(run.status.exit_code, 0) << run.out << run.err;
  EXPECT_THAT(run.out, HasSubstr("trainer=mine, speed=10: ok"));
  EXPECT_THAT(run.out, HasSubstr("version 2.1"));
  const auto rows = cli.Run(
      {"query", "SELECT trainer, own, step_median_ns FROM runs WHERE own <> '' ORDER BY step_median_ns", "-o", "csv"});
  EXPECT_THAT(rows.out, HasSubstr("mine,\"{\"\"speed\"\":5}\",5000000\r\nmine,\"{\"\"speed\"\":10}\",10000000\r\n"));
  EXPECT_THAT(cli.Run({"run", sweep}).out, HasSubstr("3 were already measured"));
  EXPECT_EQ(cli.Run({"db", "check"}).status.exit_code, 0);
}

TEST(DefinedTrainers, TheirOwnFieldsMayHaveTheNamesOfSqlsWords) {
  Cli cli;
  WriteText(cli, "mine.yaml",
            "name: mine\nabout: a script\nversion: \"1\"\ntested: log\nresult: patterns\n"
            "command: [/bin/sh, -c, 'for i in 1 2 3; do echo \"step $i: {{order}}{{group}}{{select}} ms\"; done']\n"
            "processes: one\nsupports: {seq_length: any, model: any}\n"
            "fields:\n  order: {type: integer, default: 5}\n  group: {type: integer, default: 5}\n"
            "  select: {type: integer, default: 5}\n"
            "metrics: [{name: step_time, regex: 'step (?P<step>\\d+): (?P<value>\\S+) ms', unit: ms, take: series}]\n");
  const auto sweep =
      WriteText(cli, "sweep.yaml",
                std::string(kSweep) + "matrix: {trainer: [mine], order: [1, 2], group: [3, 4], select: [5, 6]}\n");
  const auto run = cli.Run({"run", sweep});
  EXPECT_EQ(run.status.exit_code, 0) << run.out << run.err;
  EXPECT_THAT(run.out, HasSubstr("order=2, group=4, select=6: ok"));
}

// The definition lies beside the sweep, but not near the rendered files.
TEST(DefinedTrainers, RenderedJobsAreCollectedWithTheDefinitionThatTheyHad) {
  Cli cli;
  std::filesystem::create_directories(cli.dir.path() / "mine");
  WriteMine(cli, kThreeSteps, kAnySequence);
  std::filesystem::rename(cli.dir.path() / "mine.yaml", cli.dir.path() / "mine/mine.yaml");
  const auto sweep =
      WriteText(cli, "mine/sweep.yaml", std::string(kSweep) + "matrix: {trainer: [mine], speed: [5, 10]}\n");
  const auto rendered = cli.Run({"render", sweep, "--to", "by hand"});
  ASSERT_EQ(rendered.status.exit_code, 0) << rendered.err;
  ASSERT_TRUE(Child::Spawn({"/bin/sh", cli.dir.path() / "by hand/run-jobs.sh"}).Wait().ok());
  std::filesystem::remove_all(cli.dir.path() / "mine");
  const auto collected = cli.Run({"collect", "by hand"});
  EXPECT_EQ(collected.status.exit_code, 0) << collected.err;
  EXPECT_THAT(collected.out, HasSubstr("2 new results"));
  EXPECT_THAT(collected.out, HasSubstr("2 ok"));
}

TEST(DefinedTrainers, FewerStepsThanAskedForAreSaidWhereverResultsAre) {
  Cli cli;
  WriteMine(cli, kThreeSteps, kAnySequence);
  const std::string text =
      "name: test\ndefaults: {model: llama-5m, seq_length: 32}\nmatrix: {trainer: [mine]}\n"
      "measure: {warmup_steps: 1, steps: 103";
  const auto sweep = WriteText(cli, "sweep.yaml", text + "}\n");
  const auto run = cli.Run({"run", sweep});
  EXPECT_EQ(run.status.exit_code, 0) << run.out << run.err;
  EXPECT_THAT(run.out, HasSubstr("steps 2 of 103"));
  for (const char* form : {"md", "csv", "json", "html"})
    EXPECT_THAT(cli.Run({"report", "sweep", "-o", form}).out, HasSubstr("steps 2 of 103")) << form;
  EXPECT_THAT(cli.Run({"query", "SELECT run_note FROM runs"}).out, HasSubstr("steps 2 of 103"));
  WriteText(cli, "sweep.yaml", text + ", min_steps: 50}\n");
  EXPECT_THAT(cli.Run({"run", "--again", sweep}).out, HasSubstr("invalid"));
  WriteText(cli, "sweep.yaml", text + ", min_steps: 104}\n");
  const auto refused = cli.Run({"plan", sweep});
  EXPECT_EQ(refused.status.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("measure.min_steps is more than the steps measured"));
}

TEST(DefinedTrainers, TimesInAnotherUnitAreNoResult) {
  Cli cli;
  WriteMine(cli, "echo mine 2.1; for i in 1 2 3; do echo \"step $i: 90000 ms\"; done\n", kAnySequence);
  const auto sweep = WriteText(cli, "sweep.yaml", std::string(kSweep) + "matrix: {trainer: [mine]}\n");
  const auto run = cli.Run({"run", sweep});
  EXPECT_THAT(run.out, HasSubstr("invalid"));
  EXPECT_THAT(run.out + run.err, HasSubstr("its 3 step times come to 4 min 30 s, and the process lived for"));
}

TEST(DefinedTrainers, AnotherDefinitionIsAnotherMeasurement) {
  Cli cli;
  WriteMine(cli, kThreeSteps, kAnySequence);
  const auto sweep = WriteText(cli, "sweep.yaml", std::string(kSweep) + "matrix: {trainer: [ridgeline, mine]}\n");
  EXPECT_EQ(cli.Run({"run", sweep}).status.exit_code, 0);
  WriteMine(cli, kThreeSteps, kAnySequence + std::string("env: {FASTER: '1'}\n"));
  const auto again = cli.Run({"run", sweep});
  EXPECT_THAT(again.out, HasSubstr("1 was already measured")) << again.err;
  EXPECT_EQ(cli.Count("SELECT count(*) FROM results"), 3);
}

TEST(DefinedTrainers, APointThatItCannotRunIsRefusedBeforeAnythingStarts) {
  Cli cli;
  WriteMine(cli, kThreeSteps, "supports: {precision: [fp32, bf16], seq_length: any}\n");
  const auto sweep = WriteText(cli, "sweep.yaml",
                               std::string(kSweep) + "matrix: {trainer: [ridgeline, mine], precision: [bf16, fp8]}\n");
  for (const char* command : {"plan", "run"}) {
    const auto refused = cli.Run({command, sweep});
    EXPECT_EQ(refused.status.exit_code, 2);
    EXPECT_THAT(refused.err, HasSubstr("sweep.yaml:4:56: trainer mine takes precision: fp32, bf16, not fp8"));
  }
}

TEST(DefinedTrainers, AFieldOrATrainerThatIsNoneIsSaidWithTheNearest) {
  Cli cli;
  WriteMine(cli, kThreeSteps, kAnySequence);
  const auto field = WriteText(cli, "field.yaml", std::string(kSweep) + "matrix: {trainer: [mine], spead: [5]}\n");
  EXPECT_THAT(cli.Run({"plan", field}).err, HasSubstr("field.yaml:4:27: unknown field 'spead', did you mean 'speed'?"));
  const auto trainer = WriteText(cli, "trainer.yaml", std::string(kSweep) + "matrix: {trainer: [mime]}\n");
  const auto refused = cli.Run({"plan", trainer});
  EXPECT_EQ(refused.status.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("trainer.yaml:4:20: there is no trainer 'mime', did you mean 'mine'?"));
}

TEST(DefinedTrainers, AProgramOrAVariableThatIsMissingIsToldBeforeAnythingStarts) {
  Cli cli;
  WriteMine(cli, kThreeSteps, kAnySequence + std::string("env: {A: '{{env.SURELY_NOT_SET}}'}\n"));
  const auto sweep = WriteText(cli, "sweep.yaml", std::string(kSweep) + "matrix: {trainer: [mine]}\n");
  EXPECT_THAT(cli.Run({"run", sweep}).err, HasSubstr("trainer mine: env.SURELY_NOT_SET has no value here"));
}

TEST(DefinedTrainers, StatusAndCancelNeedNoDefinition) {
  Cli cli;
  WriteMine(cli, kThreeSteps, kAnySequence);
  const auto sweep = WriteText(cli, "sweep.yaml", std::string(kSweep) + "matrix: {trainer: [mine]}\n");
  EXPECT_EQ(cli.Run({"run", sweep}).status.exit_code, 0);
  std::filesystem::remove(cli.dir.path() / "mine.yaml");
  for (const std::string& name_or_file : {std::string("test"), sweep.string()}) {
    EXPECT_EQ(cli.Run({"status", name_or_file}).status.exit_code, 0);
    EXPECT_EQ(cli.Run({"cancel", name_or_file}).status.exit_code, 0);
  }
}

TEST(DefinedTrainers, PyTorchIsMeasuredBesideOursInOneReport) {
  Cli cli;
  const auto sweep = WriteText(
      cli, "sweep.yaml",
      fmt::format(
          "name: side by side\n"
          "defaults: {{precision: fp32, seq_length: 32}}\n"
          "include:\n"
          "  - {{family: stack, layers: 1, hidden: 64, heads: 2, ffn: 256, trainer: [ridgeline, torch-ddp], ranks: "
          "2}}\n"
          "  - {{family: gpt, layers: 1, hidden: 64, heads: 2, ffn: 256, vocab: 256, positions: 64, trainer: "
          "[ridgeline, torch-gpt]}}\n"
          "measure: {{warmup_steps: 1, steps: 3}}\n"
          "launch: {{time_limit: 5m, environment: {{TORCH_TRAINERS: {}}}}}\nreport: [activation-checkpointing]\n",
          kTorch));
  const auto run = cli.Run({"run", "--trainers", kTorch, sweep});
  EXPECT_EQ(run.status.exit_code, 0) << run.out << run.err;
  EXPECT_EQ(cli.Count("SELECT count(*) FROM runs WHERE status = 'ok'"), 4);
  EXPECT_EQ(cli.Count("SELECT count(*) FROM (SELECT 1 FROM runs GROUP BY family HAVING min(parameters) * 1.01 < "
                      "max(parameters) OR count(DISTINCT model_causal_flops_per_step) > 1)"),
            0)
      << "other models";
  EXPECT_EQ(cli.Count("SELECT count(*) FROM runs WHERE trainer LIKE 'torch-%' AND rss_peak_bytes > 100000000 AND "
                      "cold_tokens_per_s > 0"),
            2);
  const std::string report = ReadFile(cli.dir.path() / "ridgeline-out/activation-checkpointing.md");
  for (const char* name : {"; by torch-ddp 1.", "; by torch-gpt 1.", "; by ridgeline-train "})
    EXPECT_THAT(report, HasSubstr(name));
}

TEST(DefinedTrainers, PyTorchContinuesFromItsCheckpointFile) {
  Cli cli;
  const auto sweep =
      WriteText(cli, "sweep.yaml",
                fmt::format("name: goes on\n"
                            "defaults: {{precision: fp32, seq_length: 32, family: gpt, layers: 1, hidden: 64, heads: "
                            "2, ffn: 256, vocab: 256, "
                            "positions: 64, trainer: torch-gpt, pause: 0.2}}\n"
                            "measure: {{warmup_steps: 0, steps: 40}}\ncheckpoint: {{dir: state, every_steps: 2}}\n"
                            "launch: {{keep_logs: true, environment: {{TORCH_TRAINERS: {}}}}}\n",
                            kTorch));
  Child run = cli.Start({"run", "--trainers", kTorch, sweep});
  const auto kept = [&] {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(cli.dir.path())) {
      if (entry.path().filename() == "ckpt.pt") return true;
    }
    return false;
  };
  ASSERT_TRUE(testing::Eventually(kept));
  run.Signal(SIGTERM);
  cli.Finish(run);
  const auto again = cli.Run({"run", "--trainers", kTorch, sweep});
  EXPECT_EQ(again.status.exit_code, 0) << again.out << again.err;
  EXPECT_EQ(cli.Count("SELECT count(*) FROM latest WHERE status = 'ok'"), 1);
  EXPECT_LT(cli.Count("SELECT CAST(evidence ->> '$.step_times_found' AS INTEGER) FROM latest"), 40) << "it began anew";
}

// A name that would be markup, a separator and the end of a text wherever it is not escaped.
TEST(DefinedTrainers, AModelMayBeOnlyAName) {
  Cli cli;
  WriteText(cli, "named.sh", "echo \"it trains $1\"; for i in 1 2 3; do echo \"step $i: 5 ms\"; done\n");
  WriteText(
      cli, "named.yaml",
      fmt::format("name: named\nabout: a script\nversion: \"1\"\ntested: log\nresult: patterns\n"
                  "command: [/bin/sh, '{}', '{{{{model}}}}']\nprocesses: one\nsupports: {{seq_length: any}}\n"
                  "metrics:\n"
                  "  - {{name: step_time, regex: 'step (?P<step>\\d+): (?P<value>\\S+) ms', unit: ms, take: series}}\n"
                  "  - {{name: version, regex: '^it trains (.*)'}}\n",
                  (cli.dir.path() / "named.sh").string()));
  const auto sweep =
      WriteText(cli, "sweep.yaml",
                "name: test\ndefaults: {seq_length: 32, trainer: named}\nmeasure: {warmup_steps: 0, steps: 3}\n"
                "matrix: {model: ['<b>x</b>, \"y\"|''z', qwen3-30b-a3b, llama3-8b]}\n");
  const auto plan = cli.Run({"plan", sweep, "-o", "csv"});
  EXPECT_EQ(plan.status.exit_code, 0) << plan.err;
  EXPECT_THAT(plan.out, HasSubstr(",\"<b>x</b>, \"\"y\"\"|'z\",,,,not_predicted,"));
  EXPECT_THAT(plan.out, HasSubstr(",qwen3-30b-a3b,30532122624,3353032704,,not_predicted,"));
  EXPECT_THAT(plan.out, HasSubstr(",llama-8b,8030261248,8030261248,,not_predicted,"));
  const auto run = cli.Run({"run", sweep});
  EXPECT_EQ(run.status.exit_code, 0) << run.out << run.err;
  const auto rows = cli.Run({"query",
                             "SELECT model, parameters, layers, experts, model_causal_flops_per_step > 0 AS works, "
                             "environment ->> '$.version' AS told FROM runs ORDER BY model",
                             "-o", "csv"});
  EXPECT_THAT(rows.out, HasSubstr("\"<b>x</b>, \"\"y\"\"|'z\",,,,,\"<b>x</b>, \"\"y\"\"|'z\"\r\n"));
  EXPECT_THAT(rows.out, HasSubstr("qwen3-30b-a3b,,48,128,1,qwen3-30b-a3b\r\n"));
  EXPECT_THAT(rows.out, HasSubstr("llama-8b,,32,0,1,llama-8b\r\n"));
  EXPECT_THAT(cli.Run({"run", sweep}).out, HasSubstr("3 were already measured"));
  EXPECT_EQ(cli.Run({"db", "check"}).status.exit_code, 0);
  const auto page = cli.dir.path() / "page.html";
  const auto report = cli.Run({"report", "sweep", "--sweep", "test", "-o", "html", "--to", page});
  EXPECT_EQ(report.status.exit_code, 0) << report.err;
  const std::string html = ReadFile(page);
  EXPECT_THAT(html, HasSubstr("&lt;b&gt;x&lt;/b&gt;"));
  EXPECT_THAT(html, Not(HasSubstr("<b>x")));
}

}  // namespace
}  // namespace ridgeline::cli
