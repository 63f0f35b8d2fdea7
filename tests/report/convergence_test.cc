// The convergence report: curves and gaps by step, the effect of formats over seeds, and diverging runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "report/page.h"
#include "run/result.h"
#include "tests/report/readable.h"
#include "tests/report/sample.h"

namespace ridgeline::report {
namespace {

using report_sample::ExpectGolden;
using report_sample::Runs;
using report_sample::WithoutIds;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Optional;
using testing::SizeIs;

constexpr int kSteps = 120;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

class ConvergenceTest : public report_sample::ReportTest {
 protected:
  ConvergenceTest() : ReportTest("convergence") {}

  // A run whose loss falls from 6 to 2, with `above` more at its end than at its beginning, and noise per step that
  // only the seed decides.
  static RunResult& Add(Runs& runs, const Json& format, int seed, double above) {
    Json spec = {{"model", "llama-5m"}, {"data", "/text"}, {"steps", kSteps}, {"warmup_steps", 0}, {"grad_clip", 1}};
    spec.update(format);
    spec["seed"] = seed;
    RunResult& result = runs.Add(spec);
    for (int step = 1; step <= kSteps; ++step) {
      const double noise = 0.03125 * ((step * 7 + seed * 3) % 5);
      result.loss.push_back(2 + 40.0 / (9 + step) + noise + above * step / kSteps);
      result.grad_norm.push_back(1 + 0.125 * ((step * 5 + seed) % 7));
    }
    return result;
  }

  // fp32; bf16 close to it; and a third format that is emulated, is far off, skips steps, and diverges with one seed.
  void FillSample() {
    Runs runs(store_);
    for (const int seed : {1, 2, 3}) Add(runs, kFp32, seed, 0.0625 * seed);
    for (const int seed : {1, 2, 3}) Add(runs, kBf16, seed, 0.0625 * seed + 0.001 * (seed - 2));
    for (const int seed : {1, 2, 3}) {
      RunResult& result = Add(runs, kThird, seed, 0.0625 * seed + 0.5);
      result.emulated = true;
      result.skipped_steps = seed;
      if (seed == 3) {
        result.status = RunStatus::kDiverged;
        result.message = "the loss became nan at step 50 of 120";
        result.loss.resize(50);
        result.loss.back() = kNan;
        result.grad_norm.resize(50);
      }
    }
    runs.Put("sample");
  }

  static size_t Find(const Rows& rows, const std::string& run) {
    for (size_t row = 0; row < rows.size(); ++row) {
      if (rows.Text(row, "run") == run) return row;
    }
    ADD_FAILURE() << "no run " << run;
    return 0;
  }

  static inline const Json kFp32 = {{"precision", "fp32"}};
  static inline const Json kBf16 = {{"precision", "bf16"}};
  static inline const Json kThird = {{"precision", "bf16"}, {"state_precision", "bf16"}};
  static constexpr const char* kThirdName = "bf16 with bf16 state";
};

TEST_F(ConvergenceTest, TheGapIsToFp32OfTheSameSeedStepByStep) {
  FillSample();
  const Rows rows = Answer();
  ASSERT_EQ(rows.size(), 9U);
  for (const int seed : {1, 2, 3}) {
    const std::string suffix = ", seed " + std::to_string(seed);
    const size_t bf16 = Find(rows, "bf16" + suffix);
    const std::vector<double> gap = rows.Series(bf16, "gap_by_step");
    ASSERT_THAT(gap, SizeIs(kSteps));
    for (int step = 1; step <= kSteps; ++step) {
      EXPECT_NEAR(gap[static_cast<size_t>(step - 1)], 0.001 * (seed - 2) * step / kSteps, 1e-9);
    }
    EXPECT_THAT(rows.Series(bf16, "loss_by_step"), SizeIs(kSteps));
    EXPECT_THAT(rows.Series(bf16, "grad_norm_by_step"), SizeIs(kSteps));
    EXPECT_THAT(rows.Series(Find(rows, "fp32" + suffix), "gap_by_step"), IsEmpty());
    // The last 20 steps are 101 to 120.
    EXPECT_THAT(rows.Number(bf16, "final_gap"), Optional(DoubleNear(0.001 * (seed - 2) * 110.5 / kSteps, 1e-9)));
  }
}

// For squares of large losses, a double has too few digits to distinguish them.
TEST_F(ConvergenceTest, TheSpreadOfLargeLossesIsTheirsAndNoRounding) {
  Runs runs(store_);
  for (const int seed : {1, 2, 3}) {
    RunResult& result = Add(runs, kFp32, seed, 0);
    result.loss.assign(kSteps, 100'000 + 0.0009765625 * seed);
  }
  runs.Put("sample");
  const Rows rows = Answer();
  EXPECT_THAT(rows.Number(Find(rows, "fp32, seed 1"), "format_loss_sd"), Optional(DoubleNear(0.0009765625, 1e-9)));
}

TEST_F(ConvergenceTest, FormatsAreComparedOverSeedsAndWithTheirNoise) {
  FillSample();
  const Rows rows = Answer();
  const size_t fp32 = Find(rows, "fp32, seed 1");
  // At the last step, seeds are 0.0625 apart. The mean over the last 20 steps lies 9.5 steps earlier. Their noise has
  // one mean over 20 steps.
  const double deviation = 0.0625 * 110.5 / kSteps;
  EXPECT_THAT(rows.Number(fp32, "format_loss_sd"), Optional(DoubleNear(deviation, 1e-9)));
  EXPECT_EQ(rows.Number(fp32, "format_gap"), std::nullopt);
  EXPECT_EQ(rows.Number(fp32, "within_noise"), std::nullopt);
  const size_t bf16 = Find(rows, "bf16, seed 2");
  EXPECT_THAT(rows.Number(bf16, "format_gap"), Optional(DoubleNear(0, 1e-9)));
  EXPECT_THAT(rows.Number(bf16, "format_gap_sd"), Optional(DoubleNear(0.001 * 110.5 / kSteps, 1e-9)));
  EXPECT_EQ(rows.Number(bf16, "within_noise"), 1);
  const size_t third = Find(rows, std::string(kThirdName) + ", seed 3");
  EXPECT_EQ(rows.Text(third, "format_runs"), "2 of 3");
  EXPECT_EQ(rows.Number(third, "format_skipped_steps"), 6);
  EXPECT_EQ(rows.Number(third, "within_noise"), 0);
  EXPECT_EQ(rows.Text(third, "outcome"), "diverged");
  EXPECT_EQ(rows.Number(third, "final_loss"), std::nullopt);
}

TEST_F(ConvergenceTest, TheConclusionSaysWhichFormatsAreWithinTheNoise) {
  FillSample();
  const Rows rows = Answer();
  const std::vector<Panel> panels = MakePanels(rows);
  ASSERT_THAT(panels, SizeIs(1));
  EXPECT_THAT(Conclude(report_, rows, panels[0].rows),
              ElementsAre("Formats within the noise of fp32's seeds after 120 steps: bf16.",
                          "Beyond the noise: bf16 with bf16 state (1 of 3 runs failed).",
                          "Another seed changes fp32's final loss by 0.0576 (one standard deviation over 3 seeds)."));
}

TEST_F(ConvergenceTest, AGapBeyondTheNoiseIsSaidWithItsSize) {
  Runs runs(store_);
  for (const int seed : {1, 2}) Add(runs, kFp32, seed, 0.0625 * seed);
  for (const int seed : {1, 2}) Add(runs, kBf16, seed, 0.0625 * seed - 0.5);
  runs.Put("s");
  const Rows rows = Answer();
  const std::vector<std::string> said = Conclude(report_, rows, MakePanels(rows)[0].rows);
  ASSERT_THAT(said, SizeIs(3));
  EXPECT_THAT(said[0], HasSubstr("after 120 steps: none."));
  EXPECT_EQ(said[1], "Beyond the noise: bf16 (-0.460).");
}

TEST_F(ConvergenceTest, OneSeedHasNoNoiseToCompareWith) {
  Runs runs(store_);
  Add(runs, kFp32, 1, 0);
  Add(runs, kBf16, 1, -0.5);
  runs.Put("s");
  const Rows rows = Answer();
  EXPECT_THAT(Conclude(report_, rows, MakePanels(rows)[0].rows),
              ElementsAre("One seed of fp32 cannot show noise, so the page does not say which formats are within it.",
                          "After 120 steps, bf16 has the largest gap to fp32: \xE2\x88\x92"
                          "0.4604. Two or more seeds would show how much of it is chance."));
  EXPECT_EQ(rows.Number(Find(rows, "bf16, seed 1"), "within_noise"), std::nullopt);
  EXPECT_THAT(rows.Number(Find(rows, "bf16, seed 1"), "final_gap"), Optional(DoubleNear(-0.5 * 110.5 / kSteps, 1e-9)));
}

TEST_F(ConvergenceTest, ManyFormatsAreCountedInTheAnswerAndNamedBelowIt) {
  Runs runs(store_);
  for (const int seed : {1, 2}) Add(runs, kFp32, seed, 0.0625 * seed);
  for (const char* precision : {"bf16", "fp8", "mxfp8", "nvfp4"}) {
    for (const int seed : {1, 2}) {
      Add(runs, {{"precision", precision}, {"state_precision", "bf16"}}, seed, 0.0625 * seed).emulated = true;
    }
  }
  runs.Put("s");
  const Rows rows = Answer();
  const std::vector<std::string> said = Conclude(report_, rows, MakePanels(rows)[0].rows);
  ASSERT_THAT(said, SizeIs(3));
  EXPECT_EQ(said[0], "Formats within the noise of fp32's seeds after 120 steps: 4 of 4 formats.");
  EXPECT_THAT(said[1], HasSubstr("Within the noise: bf16 with bf16 state (emulated), fp8 with"));
}

TEST_F(ConvergenceTest, AFormatWithoutASeedInCommonIsNeitherWithinTheNoiseNorBeyond) {
  Runs runs(store_);
  for (const int seed : {1, 2}) Add(runs, kFp32, seed, 0.0625 * seed);
  Add(runs, kBf16, 7, 0);
  runs.Put("s");
  const Rows rows = Answer();
  EXPECT_EQ(rows.Number(Find(rows, "bf16, seed 7"), "within_noise"), std::nullopt);
  EXPECT_THAT(Conclude(report_, rows, MakePanels(rows)[0].rows),
              ElementsAre(HasSubstr("Another seed changes fp32's final loss by")));
}

TEST_F(ConvergenceTest, TheAnswerSaysWhyNothingIsCompared) {
  const auto answer = [&] {
    const Rows rows = Answer();
    const std::vector<std::string> said = Conclude(report_, rows, MakePanels(rows)[0].rows);
    return said.empty() ? std::string() : said[0];
  };
  Runs none(store_);
  Add(none, kFp32, 1, 0).status = RunStatus::kDiverged;
  none.Put("none");
  EXPECT_EQ(answer(), "No run succeeded. The table says how each one ended.");
  Runs without(store_);
  Add(without, kBf16, 1, 0);
  without.Put("without");
  EXPECT_EQ(answer(), "No run in fp32 succeeded, so no format is compared with it.");
}

TEST_F(ConvergenceTest, ShortRunsAndSyntheticOnesAreLeftOutAndSayWhy) {
  Runs runs(store_);
  RunResult& few = Add(runs, {{"precision", "fp32"}, {"steps", 50}}, 1, 0);
  few.loss.resize(50);
  runs.Add({{"model", "llama-10m"}, {"steps", 300}}).loss = {2};
  runs.Put("s");
  const Rows all = Answer();
  ASSERT_EQ(all.size(), 1U) << "of a whole store, runs on synthetic tokens are measurements of speed";
  EXPECT_EQ(all.Text(0, "outcome"), "left out: 50 steps, and convergence takes 100");
  EXPECT_EQ(all.Number(0, "final_loss"), std::nullopt);
  EXPECT_EQ(all.Text(0, "loss_by_step"), "");
  EXPECT_FALSE(all.Failed(0));
  EXPECT_THAT(Conclude(report_, all, MakePanels(all)[0].rows),
              ElementsAre("Nothing is compared: 50 steps, and convergence takes 100."));

  const Rows sweep(report_, store_.Query(report_.sql, {{"sweep", "s"}}));
  ASSERT_EQ(sweep.size(), 2U) << "of a sweep, every run is there";
  EXPECT_EQ(sweep.Text(1, "outcome"), "left out: synthetic tokens hold nothing to learn");
}

TEST_F(ConvergenceTest, SettingsThatChangeTheLearningHaveTheirOwnPanel) {
  Runs runs(store_);
  const Json base = kFp32;
  for (const Json& change :
       {Json::object(), Json{{"batch_size", 2}}, Json{{"seq_length", 64}}, Json{{"grad_accumulation", 2}},
        Json{{"learning_rate", 1e-3}}, Json{{"schedule", "cosine"}}, Json{{"lr_warmup_steps", 5}},
        Json{{"learning_rate_min", 1e-5}, {"schedule", "cosine"}}, Json{{"optimizer", "adam"}}, Json{{"dropout", 0.5}},
        Json{{"grad_clip", 2}}, Json{{"weight_decay", 0}}, Json{{"data", "/other"}}, Json{{"steps", 240}},
        Json{{"layers", 3}}}) {
    Json spec = base;
    spec.update(change);
    Add(runs, spec, 1, 0);
  }
  Add(runs, kBf16, 2, 0);
  runs.Put("s");
  EXPECT_THAT(MakePanels(Answer()), SizeIs(15));
}

TEST_F(ConvergenceTest, ALineIsTheMeanOfItsRunsAndItsBandWhatTheySpan) {
  FillSample();
  const Rows rows = Answer();
  const std::vector<Panel> panels = MakePanels(rows);
  ReportChart chart = report_.charts[0];
  std::get<ChartLines>(chart.kind).points = 10;  // 12 steps each
  const LineChart lines = MakeLineChart(report_, chart, rows, panels[0].rows, "c");
  ASSERT_THAT(lines.lines, SizeIs(4));  // three formats, and the run that diverged
  const Curve& fp32 = lines.lines[0];
  EXPECT_EQ(fp32.legend, "fp32");
  ASSERT_THAT(fp32.points, SizeIs(10));
  EXPECT_EQ(fp32.points[0].x, 6.5);
  std::vector<double> means;
  for (const char* run : {"fp32, seed 1", "fp32, seed 2", "fp32, seed 3"}) {
    const std::vector<double> loss = rows.Series(Find(rows, run), "loss_by_step");
    double mean = 0;
    for (size_t i = 108; i < 120; ++i) mean += loss[i] / 12;
    means.push_back(mean);
  }
  EXPECT_NEAR(fp32.points[9].y, (means[0] + means[1] + means[2]) / 3, 1e-9);
  EXPECT_NEAR(fp32.points[9].low, std::min({means[0], means[1], means[2]}), 1e-9);
  EXPECT_NEAR(fp32.points[9].high, std::max({means[0], means[1], means[2]}), 1e-9);
  EXPECT_EQ(lines.lines[2].legend, std::string(kThirdName) + ", emulated");
  EXPECT_EQ(lines.lines[2].stroke, Stroke::kDashed);
  const Curve& diverged = lines.lines[3];
  EXPECT_EQ(diverged.legend, "");
  EXPECT_EQ(diverged.failure, std::string(kThirdName) + ", seed 3: diverged");
  EXPECT_EQ(diverged.colour, lines.lines[2].colour);
  EXPECT_THAT(diverged.points, SizeIs(5));
  // A format has the same colour in every chart, although fp32 has no line in the second.
  const LineChart gaps = MakeLineChart(report_, report_.charts[1], rows, panels[0].rows, "g");
  EXPECT_EQ(gaps.lines[0].legend, "bf16");
  EXPECT_EQ(gaps.lines[0].colour, lines.lines[1].colour);
  EXPECT_THAT(gaps.description, HasSubstr("the mean of 3 runs."));
}

TEST_F(ConvergenceTest, ARunThatNeverBeganIsARowAndNoLine) {
  Runs runs(store_);
  Add(runs, kFp32, 1, 0);
  Json spec = {{"model", "llama-5m"}, {"data", "/text"}, {"steps", kSteps}, {"warmup_steps", 0}, {"grad_clip", 1}};
  spec.update(kBf16);
  spec["seed"] = 1;
  runs.Add(spec, RunStatus::kOomHost).message = "the plan does not fit";
  runs.Put("s");
  const Rows rows = Answer();
  const std::vector<Panel> panels = MakePanels(rows);
  EXPECT_THAT(panels[0].rows, SizeIs(2));
  EXPECT_THAT(MakeLineChart(report_, report_.charts[0], rows, panels[0].rows, "c").lines, SizeIs(1));
  EXPECT_THAT(MakeLineChart(report_, report_.charts[1], rows, panels[0].rows, "c").lines, IsEmpty());
  const std::string html = Render(report_, store_, {"s", ReportFormat::kHtml}).bytes;
  EXPECT_THAT(html, HasSubstr("the plan does not fit"));
  EXPECT_THAT(html, Not(HasSubstr("Gap to fp32</strong>")));
}

TEST_F(ConvergenceTest, CsvAndJsonHoldEveryStepAndThePageDoesNot) {
  FillSample();
  const Json json = ParseJson(Render(report_, store_, {"sample", ReportFormat::kJson}).bytes, "json");
  ASSERT_EQ(json["rows"].size(), 9U);
  EXPECT_EQ(json["rows"][0]["loss_by_step"].size(), static_cast<size_t>(kSteps));
  EXPECT_TRUE(json["rows"][0]["gap_by_step"].is_null());
  EXPECT_EQ(json["rows"][3]["gap_by_step"].size(), static_cast<size_t>(kSteps));
  EXPECT_TRUE(json["rows"][8]["loss_by_step"][49].is_null());
  const std::string csv = Render(report_, store_, {"sample", ReportFormat::kCsv}).bytes;
  EXPECT_THAT(csv, HasSubstr("loss_by_step,gap_by_step,grad_norm_by_step"));
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '['), 9 + 6 + 9);
  EXPECT_THAT(Render(report_, store_, {"sample", ReportFormat::kHtml}).bytes, Not(HasSubstr("loss_by_step")));
}

TEST_F(ConvergenceTest, TheSampleIsAsTheGoldensHaveIt) {
  FillSample();
  ExpectGolden(WithoutIds(Render(report_, store_, {"sample", ReportFormat::kHtml}).bytes), "convergence.html");
  ExpectGolden(WithoutIds(Render(report_, store_, {"sample", ReportFormat::kMarkdown}).bytes), "convergence.md");
}

TEST_F(ConvergenceTest, ASeriesThatIsNoneIsRefused) {
  Table table = store_.Query(report_.sql);
  const auto column = std::find(table.columns.begin(), table.columns.end(), "loss_by_step") - table.columns.begin();
  table.rows.emplace_back(table.columns.size());
  for (const char* text : {"[1, \"x\"]", "{}", "3"}) {
    table.rows[0][static_cast<size_t>(column)] = text;
    for (const ReportFormat format : {ReportFormat::kHtml, ReportFormat::kJson}) {
      try {
        RenderRows(report_, table, {"", format});
        ADD_FAILURE() << text;
      } catch (const Error& e) {
        EXPECT_EQ(e.kind(), ErrorKind::kInvalidInput);
        EXPECT_THAT(e.message(), HasSubstr("'loss_by_step' as a series"));
      }
    }
  }
}

}  // namespace
}  // namespace ridgeline::report
