// A sweep's price before it runs, predictions in a database, and invalid requests for them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "base/json.h"
#include "tests/cli/cli.h"

namespace ridgeline::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class PriceTest : public ::testing::Test {
 protected:
  void Write(const std::string& more) const {
    std::ofstream(cli_.dir / "s.yaml") << "name: s\ndefaults: {model: llama-124m, shard: full, ranks: 8}\n"
                                          "matrix: {batch_size: [1, 2]}\n"
                                       << more;
  }

  Cli cli_;
};

TEST_F(PriceTest, APlanIsPricedOnTheDeviceThatIsNamed) {
  Write("");
  const auto plan = cli_.Run({"plan", "s.yaml", "--device", "p5", "--memory", "64GB", "-o", "json"});
  ASSERT_TRUE(plan.status.ok()) << plan.err;
  const Json rows = ParseJson(plan.out, "plan");
  const Json predicted = ParseJson(cli_.Run({"predict", "s.yaml", "--device", "p5", "-o", "json"}).out, "predict");
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_NEAR(rows.at(i).at("run_s").get<double>(), predicted.at(i).at("run_s").get<double>(), 1e-9);
    EXPECT_NEAR(rows.at(i).at("usd").get<double>(), predicted.at(i).at("usd").get<double>(), 1e-9);
    EXPECT_EQ(rows.at(i).at("price_basis"), "predicted, extrapolated");
    EXPECT_LT(rows.at(i).at("run_low_s"), rows.at(i).at("run_s"));
  }
  EXPECT_THAT(plan.err, AllOf(HasSubstr("to run 2 points takes"), HasSubstr("at 55.04 USD an hour and node (p5, ")));
  const auto unpriced = cli_.Run({"plan", "s.yaml", "--memory", "64GB"});
  EXPECT_THAT(unpriced.err, Not(HasSubstr("to run"))) << "nothing is known";
}

// `plan`, `predict`, the largest batch and a search use one device's memory and clock.
TEST_F(PriceTest, APlanJudgesAsThePredictionDoes) {
  const std::string sweep =
      "name: s\ndefaults: {model: llama-8b, precision: bf16, shard: full, ranks: 8, seq_length: 4096}\n";
  std::ofstream(cli_.dir / "s.yaml") << sweep << "matrix: {batch_size: [1, 64], checkpointing: [none, full]}\n";
  const Json rows = ParseJson(cli_.Run({"plan", "s.yaml", "--device", "p5", "-o", "json"}).out, "plan");
  const Json predicted = ParseJson(cli_.Run({"predict", "s.yaml", "--device", "p5", "-o", "json"}).out, "predict");
  ASSERT_EQ(rows.size(), 4U);
  std::set<std::string> verdicts;
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows.at(i).at("verdict"), predicted.at(i).at("verdict")) << i;
    EXPECT_EQ(rows.at(i).at("predicted_peak_bytes"), predicted.at(i).at("peak_bytes")) << i;
    EXPECT_EQ(rows.at(i).at("basis"), "the memory of a GPU of p5");
    verdicts.insert(rows.at(i).at("verdict").get<std::string>());
  }
  EXPECT_EQ(verdicts.size(), 2U);
  const Json said =
      ParseJson(cli_.Run({"plan", "s.yaml", "--device", "p5", "--memory", "200GB", "-o", "json"}).out, "plan");
  EXPECT_EQ(said.at(0).at("available_bytes"), 200'000'000'000 - 600'000'000) << "a GPU's, which no ranks share";
  EXPECT_EQ(said.at(0).at("basis"), "--memory 200GB a GPU");
  // The largest batch that fits does, and the next does not.
  std::ofstream(cli_.dir / "one.yaml") << sweep;
  const Json largest = ParseJson(
      cli_.Run({"plan", "one.yaml", "--largest", "batch_size", "--device", "p5", "-o", "json"}).out, "largest");
  const auto batch = largest.at(0).at("largest_batch_size").get<int64_t>();
  ASSERT_GT(batch, 1);
  std::ofstream(cli_.dir / "both.yaml") << sweep << "matrix: {batch_size: [" << batch << ", " << batch + 1 << "]}\n"
                                        << "price: {device: p5}\n";
  const Json both = ParseJson(cli_.Run({"plan", "both.yaml", "-o", "json"}).out, "plan");
  EXPECT_EQ(both.at(0).at("verdict"), "fits");
  EXPECT_EQ(both.at(1).at("verdict"), "out_of_memory");
}

TEST_F(PriceTest, ASearchIsPlannedForTheDeviceThatIsNamed) {
  std::ofstream(cli_.dir / "s.yaml") << "name: s\ndefaults: {model: llama-124m}\nmatrix: {batch_size: [1, 2, 4]}\n"
                                        "search: {over: [batch_size], maximize: tokens_per_s, budget: 2}\n";
  const auto plan = cli_.Run({"plan", "s.yaml", "--device", "h100"});
  ASSERT_TRUE(plan.status.ok()) << plan.err;
  EXPECT_THAT(plan.err, HasSubstr("h100, extrapolated"));
  EXPECT_THAT(plan.err,
              HasSubstr("planned as if all points ran on h100; `ridgeline run` uses the device that each point names"));
}

TEST_F(PriceTest, TheSweepNamesItsDeviceAndAWrongOneIsToldAtItsPlace) {
  Write("price: {device: p5, node: 10 USD/h, date: 2026-03}\n");
  const auto plan = cli_.Run({"plan", "s.yaml", "--memory", "64GB"});
  ASSERT_TRUE(plan.status.ok()) << plan.err;
  EXPECT_THAT(plan.err, HasSubstr("at 10.00 USD an hour and node (2026-03, as the sweep says)"));
  EXPECT_TRUE(cli_.Run({"predict", "s.yaml"}).status.ok()) << "`predict` takes it, too";
  Write("price: {device: p55}\n");
  const auto wrong = cli_.Run({"plan", "s.yaml"});
  EXPECT_EQ(wrong.status.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("s.yaml:4:17: price: there is no device 'p55', did you mean 'p5'?"));
  Write("price: {node: -1 USD/h, date: 2026-03}\n");
  const auto negative = cli_.Run({"run", "s.yaml"});
  EXPECT_EQ(negative.status.exit_code, 2);
  EXPECT_THAT(negative.err, HasSubstr("s.yaml:4:15: node of price must not be negative"));
  EXPECT_FALSE(std::filesystem::exists(cli_.dir / "ridgeline.db")) << "nothing was submitted";
  Write("");
  EXPECT_THAT(cli_.Run({"predict", "s.yaml"}).err, HasSubstr("no device is named"));
}

TEST_F(PriceTest, MeasuredPointsPriceTheRest) {
  cli_.WriteSweep(1, "ok");
  ASSERT_TRUE(cli_.Run({"run", "sweep.yaml"}).status.ok());
  cli_.WriteSweep(3, "ok");
  const auto plan = cli_.Run({"plan", "sweep.yaml", "-o", "json"});
  ASSERT_TRUE(plan.status.ok()) << plan.err;
  const Json rows = ParseJson(plan.out, "plan");
  EXPECT_EQ(rows.at(2).at("price_basis"), "from measurements");
  EXPECT_GT(rows.at(2).at("run_high_s"), rows.at(2).at("run_s"));
  EXPECT_EQ(rows.at(0).at("to_run"), 0);
  EXPECT_EQ(rows.at(1).at("to_run"), 1);
  EXPECT_THAT(plan.err, AllOf(HasSubstr("to run 2 points takes"), HasSubstr("; from measurements")));
}

TEST_F(PriceTest, ATimeLimitThatFollowsNeedsSomethingToFollowFrom) {
  cli_.WriteSweep(1, "ok", "price: {device: h100}\n");
  std::ofstream(cli_.dir / "auto.yaml") << "name: auto\ndefaults: {model: llama-10m, seq_length: 64}\n"
                                           "launch: {time_limit: auto, launcher: slurm}\n";
  const auto none = cli_.Run({"render", "auto.yaml", "--to", "rendered"});
  EXPECT_EQ(none.status.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("auto.yaml:3:9: time_limit is auto, but the time of a point is not known"));
  std::ofstream(cli_.dir / "auto.yaml", std::ios::app) << "price: {device: h100}\n";
  const auto rendered = cli_.Run({"render", "auto.yaml", "--to", "rendered"});
  ASSERT_TRUE(rendered.status.ok()) << rendered.err;
  const auto plan = cli_.Run({"plan", "auto.yaml", "--memory", "64GB"});
  EXPECT_THAT(plan.err, HasSubstr("at most 10 min 00 s a point"));
}

TEST_F(PriceTest, PredictionsAreKeptForReports) {
  Write("published:\n  - {source: a page, when: {batch_size: 1}, steady_tokens_per_s: 5}\n");
  for (int i = 0; i < 2; ++i) {
    const auto kept = cli_.Run({"predict", "s.yaml", "--device", "p5", "--db", "ridgeline.db"});
    ASSERT_TRUE(kept.status.ok()) << kept.err;
    EXPECT_THAT(kept.err, HasSubstr("2 predictions and 1 published results in ridgeline.db"));
  }
  EXPECT_EQ(cli_.Count("SELECT count(*) FROM results WHERE provenance = 'predicted'"), 2);
  EXPECT_EQ(cli_.Count("SELECT count(*) FROM results WHERE provenance = 'published'"), 1);
  EXPECT_THAT(cli_.Run({"db", "check"}).out, HasSubstr("is sound"));
  const auto report = cli_.Run({"report", "pareto", "-o", "md"});
  EXPECT_TRUE(report.status.ok()) << report.err;
  EXPECT_THAT(report.out, HasSubstr("predicted"));
  const auto history = cli_.Run({"history"});
  EXPECT_THAT(history.out, Not(HasSubstr("llama-124m"))) << "nobody measured it";
}

}  // namespace
}  // namespace ridgeline::cli
