// `ridgeline predict`: its output for a sweep on a device, and its refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/json.h"
#include "run/spec.h"
#include "store/store.h"
#include "tests/cli/cli.h"

namespace ridgeline::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class PredictCommandTest : public ::testing::Test {
 protected:
  PredictCommandTest() {
    std::ofstream(cli_.dir / "s.yaml") << "name: s\ndefaults: {model: llama-1b, seq_length: 2048, batch_size: 4}\n"
                                          "matrix: {ranks: [1, 16], checkpointing: [none, full]}\n"
                                          "exclude: [{ranks: 1, checkpointing: full}]\n";
  }

  Cli cli_;
};

TEST_F(PredictCommandTest, PricesEveryPoint) {
  const auto output = cli_.Run({"predict", "s.yaml", "--device", "p5", "-o", "json"});
  ASSERT_TRUE(output.status.ok()) << output.err;
  const Json rows = ParseJson(output.out, "ridgeline predict");
  ASSERT_EQ(rows.size(), 3U);
  for (const Json& row : rows) {
    EXPECT_EQ(row.at("basis"), "predicted, extrapolated") << row;
    EXPECT_EQ(row.at("verdict"), "fits");
    EXPECT_LT(row.at("step_low_ns"), row.at("step_ns"));
    EXPECT_GT(row.at("step_high_ns"), row.at("step_ns"));
    EXPECT_GT(row.at("usd_per_billion_tokens"), 0);
    EXPECT_GT(row.at("first_ns"), 0);
    const double machines = row.at("ranks") == 16 ? 2 : 1;
    EXPECT_NEAR(row.at("machine_hours").get<double>(), machines * row.at("run_s").get<double>() / 3600, 1e-9);
    EXPECT_NEAR(row.at("usd").get<double>(), 55.04 * row.at("machine_hours").get<double>(), 1e-9);
    EXPECT_NEAR(row.at("run_s").get<double>(), 2.2 + 7 * row.at("step_ns").get<double>() / 1e9, 1e-3);
    EXPECT_EQ(row.at("ranks") == 1, row.at("communication_ns") == 0) << row;
  }
  EXPECT_THAT(output.err, AllOf(HasSubstr("3 of 3 points predicted on p5 (AWS p5.48xlarge"),
                                HasSubstr("what they got of an H200")));
}

TEST_F(PredictCommandTest, IsCorrectedByWhatIsKnown) {
  const auto predict = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"predict", "s.yaml", "--device", "p5", "-o", "json"};
    words.insert(words.end(), more.begin(), more.end());
    return cli_.Run(words);
  };
  const Json before = ParseJson(predict({}).out, "ridgeline predict");
  const std::string typed = before.at(0).at("point").get<std::string>().substr(0, 10) + "=2s";
  const auto corrected = predict({"--known", typed});
  ASSERT_TRUE(corrected.status.ok()) << corrected.err;
  const Json after = ParseJson(corrected.out, "ridgeline predict");
  const double factor = std::pow(2e9 / before.at(0).at("step_ns").get<double>(), 1 / 1.5);
  for (size_t i = 0; i < after.size(); ++i) {
    EXPECT_NEAR(after[i].at("step_ns").get<double>() / before[i].at("step_ns").get<double>(), factor, 1e-3);
    EXPECT_THAT(after[i].at("basis"), HasSubstr("by 1 run (typed), assumed"));
  }
  const auto nothing = predict({"--known", "there-is-no-such.db"});
  EXPECT_EQ(nothing.status.exit_code, 2);
  EXPECT_THAT(nothing.err, HasSubstr("an existing file, or a point and the time of its step"));
}

// A run counts for the GPU that it ran on, whatever its spec names.
TEST_F(PredictCommandTest, ARunOfADatabaseIsOfTheGpuThatItRecorded) {
  const auto measure = [&](const std::string& file, int64_t batch, const std::string& gpu, const std::string& device) {
    std::vector<Problem> problems;
    Point point;
    point.spec = BuildSpec(
        {{"model", "llama-1b"}, {"seq_length", 2048}, {"batch_size", batch}, {"device", "cuda"}, {"gpu", gpu}},
        problems);
    ASSERT_TRUE(problems.empty()) << problems.front().message;
    point.id = PointId(point.spec);
    RunResult result;
    result.point_id = point.id;
    result.status = RunStatus::kOk;
    result.provenance = Provenance::kMeasured;
    result.device = device;
    result.step_ns.median_ns = 1'000'000'000;
    store::Store store = store::Store::Open(cli_.dir / file, store::Store::Mode::kReadWrite);
    store.PutPredictions({&point, 1}, {&result, 1}, {});
  };
  measure("runs.db", 1, "h100", "NVIDIA H100 80GB HBM3");
  measure("runs.db", 2, "h100", "");  // another trainer's run, which says nothing about it
  measure("runs.db", 3, "h100", "NVIDIA H200");
  measure("runs.db", 4, "h100", "NVIDIA H100 80GB HBM3 MIG 1g.10gb");
  const auto known = cli_.Run({"predict", "s.yaml", "--device", "p5", "--known", "runs.db", "-o", "json"});
  ASSERT_TRUE(known.status.ok()) << known.err;
  for (const Json& row : ParseJson(known.out, "ridgeline predict")) {
    EXPECT_THAT(row.at("basis"), HasSubstr("by 2 runs (runs.db)")) << row;
  }
  EXPECT_THAT(known.err, HasSubstr("--known: 1 run of runs.db left out: it names gpu h100, and ran on NVIDIA H200\n"));
  EXPECT_THAT(known.err, HasSubstr("it names gpu h100, and ran on NVIDIA H100 80GB HBM3 MIG 1g.10gb"));
  measure("elsewhere.db", 1, "h100", "NVIDIA H200");
  const auto none = cli_.Run({"predict", "s.yaml", "--device", "p5", "--known", "elsewhere.db"});
  EXPECT_EQ(none.status.exit_code, 2);
  EXPECT_THAT(none.err, AllOf(HasSubstr("left out"), HasSubstr("none of 0 known runs is on gpu h100")));
}

// A posted log gives a step's time, which corrects the other predictions.
TEST_F(PredictCommandTest, IsCorrectedByAPostedLog) {
  std::ofstream(cli_.dir / "titan.yaml")
      << "name: titan\ndefaults: {trainer: torchtitan, model: llama-8b, seq_length: 8192, ranks: 8, shard: full, "
         "device: cuda, gpu: h100, checkpointing: full, warmup_steps: 2, steps: 3}\nmatrix: {batch_size: [1, 2]}\n";
  std::ofstream log(cli_.dir / "posted.log");
  for (int step = 1; step <= 5; ++step) {
    log << "[rank0]:[titan] 2025-01-01 00:00:0" << step << ",000 - root - INFO - step: " << step
        << "  loss: 10.1234  grad_norm: 1.2345  memory: 60.00GiB(75.00%)  tps: 5,000  tflops: 290.00  mfu: 29.00%\n";
  }
  log.close();
  const auto before = cli_.Run({"predict", "titan.yaml", "--device", "p5", "-o", "json"});
  ASSERT_TRUE(before.status.ok()) << before.err;
  const Json rows = ParseJson(before.out, "ridgeline predict");
  const std::string id = rows.at(0).at("point");
  const auto line =
      cli_.Run({"trainers", "try", "torchtitan", "--log", "posted.log", "--as-calibration", "titan.yaml:" + id});
  ASSERT_TRUE(line.status.ok()) << line.err;
  const Json known = ParseJson(line.out, "a known run");
  EXPECT_EQ(known.at("gpu"), "h100");
  EXPECT_EQ(known.at("from"), "posted.log");
  EXPECT_NEAR(known.at("step_ns").get<double>(), 8192 / 5000.0 * 1e9, 1e6);
  std::ofstream(cli_.dir / "known.jsonl") << line.out;
  const auto after = cli_.Run({"predict", "titan.yaml", "--device", "p5", "--known", "known.jsonl", "-o", "json"});
  ASSERT_TRUE(after.status.ok()) << after.err;
  for (const Json& row : ParseJson(after.out, "ridgeline predict")) {
    EXPECT_THAT(row.at("basis"), HasSubstr("by 1 run (posted.log)")) << row;
  }
  const auto b200 = cli_.Run({"predict", "titan.yaml", "--device", "p6-b200", "--known", "known.jsonl"});
  EXPECT_EQ(b200.status.exit_code, 2) << "it ran on another GPU";
  std::ofstream(cli_.dir / "broken.jsonl") << line.out << "{\"version\": 1}\n";
  const auto broken = cli_.Run({"predict", "titan.yaml", "--device", "p5", "--known", "broken.jsonl"});
  EXPECT_EQ(broken.status.exit_code, 2);
  EXPECT_THAT(broken.err, HasSubstr("broken.jsonl:2: no known run"));
}

TEST_F(PredictCommandTest, ShowsWhereTheTimeOfOnePointGoes) {
  const Json plan = ParseJson(cli_.Run({"predict", "s.yaml", "--device", "p5", "-o", "json"}).out, "ridgeline predict");
  const auto id = plan.at(0).at("point").get<std::string>();
  const auto output = cli_.Run({"predict", "s.yaml", "--device", "p5", "--point", id.substr(0, 10), "-o", "json"});
  ASSERT_TRUE(output.status.ok()) << output.err;
  double ns = 0;
  for (const Json& row : ParseJson(output.out, "ridgeline predict")) ns += row.at("ns").get<double>();
  EXPECT_NEAR(ns / plan.at(0).at("step_ns").get<double>(), 1, 1e-3) << "its ops are the step";
  const auto none = cli_.Run({"predict", "s.yaml", "--device", "p5", "--point", "zz"});
  EXPECT_EQ(none.status.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("the ids of 0 points of the sweep begin with 'zz'"));
}

TEST_F(PredictCommandTest, SaysWhatDoesNotFit) {
  std::ofstream(cli_.dir / "large.yaml") << "name: s\ndefaults: {model: llama-64b}\n";
  const auto output = cli_.Run({"predict", "large.yaml", "--device", "b200"});
  EXPECT_TRUE(output.status.ok()) << output.err;
  EXPECT_THAT(output.out, HasSubstr("out_of_memory"));
  EXPECT_THAT(output.err, HasSubstr("1 out of memory (191 GB: the memory of a GPU of b200)"));
}

TEST_F(PredictCommandTest, MarksFormatsThatTheDeviceDoesNotMultiply) {
  std::ofstream(cli_.dir / "fp8.yaml") << "name: s\ndefaults: {model: llama-10m}\nmatrix: {precision: [bf16, fp8]}\n";
  const auto a100 = cli_.Run({"predict", "fp8.yaml", "--device", "a100", "-o", "json"});
  const Json rows = ParseJson(a100.out, "predict");
  EXPECT_EQ(rows.at(0).at("emulated"), 0);
  EXPECT_EQ(rows.at(1).at("emulated"), 1);
  EXPECT_TRUE(rows.at(1).at("step_low_ns").is_null()) << "no row is like it";
  EXPECT_THAT(cli_.Run({"predict", "fp8.yaml", "--device", "a100"}).out, HasSubstr("unknown"));
  EXPECT_THAT(a100.err, HasSubstr("1 emulated: a100 has no products of their format"));
  EXPECT_EQ(cli_.Run({"predict", "fp8.yaml", "--device", "h100"}).err.find("emulated:"), std::string::npos);
}

TEST_F(PredictCommandTest, NothingTakesTheUnknownsPlace) {
  const auto unknown = cli_.Run({"predict", "s.yaml", "--device", "p6-b20"});
  EXPECT_EQ(unknown.status.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("there is no device 'p6-b20', did you mean 'p6-b200'?"));
  const auto alone = cli_.Run({"predict", "s.yaml", "--device", "h100"});
  EXPECT_EQ(alone.status.exit_code, 2);
  EXPECT_THAT(
      alone.err,
      AllOf(HasSubstr("h100 is a single GPU, without a network. Links join 8 of its GPUs, and there are 16 ranks"),
            HasSubstr("name a machine of h100 GPUs with a network: --device dgx-h100 or h100-hbm2e or p5")));
}

TEST_F(PredictCommandTest, PredictsAnotherProgramsStep) {
  const std::string sweep = std::string(RIDGELINE_SOURCE_DIR) + "/sweeps/aws-blackwell.yaml";
  const auto output = cli_.Run({"predict", sweep, "--device", "p6-b200", "--framework", "te-fsdp", "-o", "json"});
  ASSERT_TRUE(output.status.ok()) << output.err;
  for (const Json& row : ParseJson(output.out, "ridgeline predict")) {
    EXPECT_LT(row.at("cold_tokens_per_s"), row.at("steady_tokens_per_s")) << row;
    EXPECT_EQ(row.at("verdict") == "fits", row.at("peak_bytes") < 180e9) << row;
  }
  EXPECT_THAT(output.err, HasSubstr("estimated as te-fsdp: time assumed, memory assumed"));
  const auto unknown = cli_.Run({"predict", "s.yaml", "--device", "p5", "--framework", "te"});
  EXPECT_EQ(unknown.status.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("there is no framework 'te'"));
}

// AWS's figures, and those beside them.
TEST_F(PredictCommandTest, ReportsHoldPublishedFiguresAgainstPredictions) {
  const std::string sweep = std::string(RIDGELINE_SOURCE_DIR) + "/sweeps/aws-blackwell.yaml";
  ASSERT_TRUE(
      cli_.Run({"predict", sweep, "--device", "p6-b200", "--framework", "te-fsdp", "--db", "aws.db"}).status.ok());
  const auto output = cli_.Run({"report", "activation-checkpointing", "--db", "aws.db", "-o", "json"});
  ASSERT_TRUE(output.status.ok()) << output.err;
  const Json report = ParseJson(output.out, "ridgeline report");
  size_t published = 0;
  for (const Json& row : report.at("rows")) {
    if (row.at("provenance") != "published") continue;
    ++published;
    EXPECT_NEAR(row.at("memory_difference_percent").get<double>(), 0, 10) << row;
    EXPECT_EQ(row.at("predicted_as"), "te-fsdp");
    EXPECT_EQ(row.at("steady_difference_percent"), nullptr) << "which nobody published";
    if (!row.at("cold_tokens_per_s").is_null()) {
      EXPECT_NEAR(row.at("cold_difference_percent").get<double>(), 0, 5) << row;
    }
  }
  EXPECT_EQ(published, 3U);
  const auto page = cli_.Run({"report", "activation-checkpointing", "--db", "aws.db", "-o", "html"});
  EXPECT_THAT(page.out, AllOf(HasSubstr("Cold throughput of a rank"), HasSubstr("\xC2\xB1"), HasSubstr("52.3K")));
}

TEST_F(PredictCommandTest, FindsADeviceBesideTheSweep) {
  std::ofstream(cli_.dir / "ours.yaml") << "name: ours\nabout: our machine\ndevice: p5\n";
  const auto output = cli_.Run({"predict", "s.yaml", "--device", "ours"});
  EXPECT_TRUE(output.status.ok()) << output.err;
  EXPECT_THAT(output.err, HasSubstr("our machine"));
}

TEST_F(PredictCommandTest, AnotherTrainersPointsAreNotPredicted) {
  std::ofstream(cli_.dir / "other.yaml")
      << "name: s\ndefaults: {model: llama-1b}\nlaunch: {trainer: [python3, mine.py]}\n";
  const auto output = cli_.Run({"predict", "other.yaml", "--device", "p5"});
  EXPECT_TRUE(output.status.ok()) << output.err;
  EXPECT_THAT(output.out, HasSubstr("not_predicted"));
  EXPECT_THAT(output.err, HasSubstr("0 of 1 points predicted"));
  EXPECT_THAT(output.err, HasSubstr("not predicted: no framework file describes this trainer's steps"));
}

TEST_F(PredictCommandTest, ATrainersPointsAreEstimatedAsItsFramework) {
  std::ofstream(cli_.dir / "others.yaml")
      << "name: s\ndefaults: {model: llama-8b, seq_length: 8192, ranks: 8, device: cuda, gpu: h100}\n"
         "matrix: {trainer: [ridgeline], shard: [full]}\ninclude:\n- {trainer: torchtitan, shard: full, checkpointing: "
         "selective}\n"
         "- {trainer: megatron_lm, shard: optimizer}\n- {trainer: torchtitan, shard: full, tensor_parallel: 2}\n";
  const auto output = cli_.Run({"predict", "others.yaml", "--device", "p5", "-o", "csv"});
  ASSERT_TRUE(output.status.ok()) << output.err;
  EXPECT_THAT(output.out, HasSubstr("estimated as torchtitan: time ±4.5 % on 17 published rows, memory assumed"));
  EXPECT_THAT(output.out, HasSubstr("estimated as megatron: time assumed, memory assumed"));
  EXPECT_THAT(output.out, HasSubstr("predicted, extrapolated"));
  EXPECT_THAT(output.err, HasSubstr("3 of 4 points predicted"));
  EXPECT_THAT(output.err, HasSubstr("not predicted: tensor_parallel: 2 is not predicted yet"));
}

TEST_F(PredictCommandTest, APlanOfAnotherTrainersPointsIsEstimatedAsItsFramework) {
  std::ofstream(cli_.dir / "titan.yaml")
      << "name: s\ndefaults: {trainer: torchtitan, model: llama-8b, seq_length: 8192, ranks: 16, device: cuda, gpu: "
         "h100,"
         " shard: full, checkpointing: selective}\nmatrix: {shard_ranks: [16, 8], batch_size: [1, 64]}\n";
  const auto output = cli_.Run({"plan", "titan.yaml", "--device", "p5", "-o", "csv"});
  ASSERT_TRUE(output.status.ok()) << output.err;
  EXPECT_THAT(output.out, AllOf(HasSubstr("estimated as torchtitan: "), HasSubstr("out_of_memory"), HasSubstr(",fits,"),
                                HasSubstr("as its framework estimates")));
  EXPECT_THAT(output.err, AllOf(HasSubstr("4 estimated as other trainers, which run whether or not they fit"),
                                HasSubstr("to run 4 points takes ")));
}

TEST_F(PredictCommandTest, TakesFrameworksOfOnesOwn) {
  std::filesystem::create_directory(cli_.dir / "mine");
  std::ifstream shipped(std::filesystem::path(RIDGELINE_SOURCE_DIR) / "frameworks" / "torchtitan.yaml");
  std::string text((std::istreambuf_iterator<char>(shipped)), {});
  text.replace(text.find("name: torchtitan"), 16, "name: ours");
  text.replace(text.find("trainers: [torchtitan]"), 22, "trainers: [megatron_lm]");
  std::ofstream(cli_.dir / "mine" / "ours.yaml") << text;
  const auto output =
      cli_.Run({"predict", "s.yaml", "--device", "p5", "--frameworks", "mine", "--framework", "ours", "-o", "csv"});
  EXPECT_TRUE(output.status.ok()) << output.err;
  EXPECT_THAT(output.out + output.err, HasSubstr("ours"));
}

TEST(AdviseCommandTest, SaysWhatToRun) {
  Cli cli;
  const auto said = cli.Run({"advise", "gpt-10m", "--device", "h100", "--to", "sweep.yaml"});
  ASSERT_TRUE(said.status.ok()) << said.err;
  EXPECT_THAT(said.out,
              AllOf(HasSubstr("gpt-10m (9.99M parameters) at sequence 1024, on one h100\n"),
                    HasSubstr("a single GPU: --ranks N takes several, and --device dgx-h100 or h100-hbm2e or p5"),
                    HasSubstr("= The model fits the 84.3 GB of a GPU without activation checkpointing"),
                    HasSubstr("\nfastest "), HasSubstr("predicted, extrapolated (docs/prediction.md)")));
  std::istringstream lines(said.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 84U) << line;  // bytes; a dash has three
  const auto plan = cli.Run({"plan", "sweep.yaml", "--device", "h100"});
  EXPECT_TRUE(plan.status.ok()) << plan.err;
  const auto shape = cli.Run({"advise", "layers=2,hidden=256,heads=4,ffn=512,vocab=1000", "--device", "a100",
                              "--seq-length", "128", "-o", "json"});
  ASSERT_TRUE(shape.status.ok()) << shape.err;
  EXPECT_EQ(ParseJson(shape.out, "ridgeline advise").at(0).at("topic"), "fit");
  EXPECT_THAT(cli.Run({"advise", "layers=2,hiden=256", "--device", "a100"}).err,
              HasSubstr("'hiden=256' is not part of a model's shape"));
  const auto model = cli.Run({"advise", "lama-8b", "--device", "h100"});
  EXPECT_EQ(model.status.exit_code, 2);
  EXPECT_THAT(model.err, HasSubstr("there is no model 'lama-8b', did you mean 'llama-8b'?"));
  EXPECT_EQ(cli.Run({"advise", "llama-8b", "--device", "h10"}).status.exit_code, 2);
  std::ofstream(cli.dir / "config.json")
      << R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 256, "num_attention_heads": 4,)"
      << R"("num_key_value_heads": 2, "intermediate_size": 512, "vocab_size": 1000})";
  const auto own = cli.Run({"advise", "config.json", "--device", "a100", "--seq-length", "128"});
  ASSERT_TRUE(own.status.ok()) << own.err;
  EXPECT_THAT(own.out, HasSubstr("config.json ("));
}

// The sweep that it writes says what the trainer's definition demands.
TEST(AdviseCommandTest, EveryFrameworksSweepIsTaken) {
  Cli cli;
  const auto framework_of = [&](const char* framework, const char* model) {
    SCOPED_TRACE(framework);
    const auto said = cli.Run(
        {"advise", model, "--framework", framework, "--device", "p5", "--seq-length", "1024", "--to", "s.yaml"});
    ASSERT_TRUE(said.status.ok()) << said.err;
    const auto priced = cli.Run({"predict", "s.yaml", "-o", "json"});
    ASSERT_TRUE(priced.status.ok()) << priced.err;
    const Json row = ParseJson(priced.out, "predict").at(0);
    EXPECT_EQ(row.at("verdict"), "fits");
    EXPECT_THAT(row.at("basis").get<std::string>(), HasSubstr(std::string("estimated as ") + framework));
  };
  framework_of("deepspeed", "llama-1b");
  framework_of("hf", "llama-1b");
  framework_of("llm-foundry", "mpt-7b");
  framework_of("megatron", "llama-1b");
  framework_of("nemo", "llama-1b");
  framework_of("te-fsdp", "stack-1b");
  framework_of("torchtitan", "llama-8b");
}

TEST(AdviseCommandTest, SaysThatNoNumberOfGpusHoldsIt) {
  Cli cli;
  const auto said = cli.Run({"advise", "stack-64b", "--device", "a100-40gb"});
  ASSERT_TRUE(said.status.ok()) << said.err;
  EXPECT_THAT(said.out, HasSubstr("No number of these GPUs holds it"));
}

}  // namespace
}  // namespace ridgeline::cli
