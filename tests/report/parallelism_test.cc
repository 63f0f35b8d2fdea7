// Splits of the same work, in the report `parallelism`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/page.h"
#include "run/result.h"
#include "tests/report/sample.h"

namespace ridgeline::report {
namespace {

using report_sample::ExpectGolden;
using report_sample::Runs;
using report_sample::Texts;
using report_sample::WithoutIds;
using testing::Contains;
using testing::DoubleNear;
using testing::Each;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::Optional;
using testing::SizeIs;
using testing::StartsWith;

class ParallelismTest : public report_sample::ReportTest {
 protected:
  ParallelismTest() : ReportTest("parallelism") {}

  static Json On(int ranks, int tensor, const char* shard, int batch, int shard_ranks = 0) {
    return {{"model", "llama-10m"}, {"ranks", ranks},      {"tensor_parallel", tensor},
            {"shard", shard},       {"batch_size", batch}, {"shard_ranks", shard_ranks}};
  }
  static RunResult& Add(Runs& runs, const Json& values, double tokens_per_s, int64_t planned_bytes) {
    RunResult& result = runs.Add(values);
    result.throughput.steady_tokens_per_s = tokens_per_s;
    result.memory.planned_peak_bytes = planned_bytes;
    return result;
  }
  void Predict(const Json& values, double tokens_per_s) {
    report_sample::PutPrediction(store_, values, tokens_per_s, 1'000'000);
  }
  void FillSample() {
    Runs runs(store_);
    Add(runs, On(8, 1, "none", 1), 1000, 9'000'000);
    Add(runs, On(8, 1, "full", 1), 900, 3'000'000);
    Add(runs, On(8, 1, "full", 1, 4), 950, 4'000'000);
    Add(runs, On(8, 2, "optimizer", 2), 1200, 5'000'000);
    Add(runs, On(8, 8, "full", 8), 500, 2'000'000);
    Add(runs, On(8, 2, "full", 1), 5000, 1'000'000);  // half of the work, and alone
    runs.Put("s");
  }
};

TEST_F(ParallelismTest, SplitsOfTheSameWorkAreAPanel) {
  FillSample();
  const Rows rows = Answer();
  ASSERT_EQ(rows.size(), 5U);
  const std::vector<Panel> panels = MakePanels(rows);
  ASSERT_THAT(panels, SizeIs(1));
  EXPECT_THAT(rows.Text(0, "panel"), HasSubstr(", 8 ranks, 8 sequences a step"));
  EXPECT_THAT(Texts(rows, "split"),
              ElementsAre("replicated", "sharded", "sharded over 4", "sharded optimizer with TP 2", "TP 8"));
  EXPECT_THAT(Texts(rows, "mark"), ElementsAre("", "", "", "most tokens/s", "least memory"));
  EXPECT_THAT(rows.Number(3, "speedup"), Optional(DoubleNear(1.2, 1e-9)));
  EXPECT_THAT(rows.Number(3, "lead"), Optional(DoubleNear(1.2, 1e-9)));
  EXPECT_THAT(rows.Number(3, "rank_tokens_per_s"), Optional(DoubleNear(150, 1e-9)));
  EXPECT_EQ(rows.Text(3, "second_words"), "replicated");
  const auto said = Said();
  EXPECT_EQ(said.at(0),
            "Sharded optimizer with TP 2 is fastest: 150 tokens/s a rank, 1.20\xC2\xA0\xC3\x97 that of replicated.");
  EXPECT_EQ(said.at(1), "Memory of a rank with sharded optimizer with TP 2: 5.00 MB.");
  EXPECT_EQ(said.at(2), "The least memory, 2.00 MB, is that of TP 8.");
}

// A split with few or unsteady steps may be as fast as the fastest, even if it is not the next.
TEST_F(ParallelismTest, TheFastestIsComparedWithEverySplit) {
  Runs runs(store_);
  Add(runs, On(8, 1, "none", 1), 1000, 9'000'000);
  Add(runs, On(8, 1, "full", 1), 1200, 3'000'000);
  RunResult& unsteady = Add(runs, On(8, 2, "full", 2), 900, 2'000'000);
  for (size_t step = 0; step < unsteady.step_ns.all_ns.size(); ++step) {
    unsteady.step_ns.all_ns[step] = static_cast<int64_t>(step % 2 == 0 ? 5e8 : 15e8);
  }
  runs.Put("s");
  EXPECT_THAT(Said().at(0), StartsWith("No difference larger than "));
  EXPECT_THAT(Said().at(0), EndsWith(" was measured between sharded and sharded with TP 2."));
  EXPECT_THAT(Said().at(1), HasSubstr(" more repeats would show a difference of "));
  unsteady.step_ns.all_ns.resize(4);
  runs.Put("s");
  EXPECT_THAT(Said(), Each(Not(HasSubstr("fastest"))));
}

// A split with several runs is one side of the comparison.
TEST_F(ParallelismTest, TheNextIsAnotherSplit) {
  Runs runs(store_);
  Json more = On(8, 1, "full", 1);
  more["grad_accumulation"] = 2;
  Add(runs, On(8, 1, "none", 2), 1000, 9'000'000);
  Add(runs, On(8, 1, "full", 2), 1500, 3'000'000);
  Add(runs, more, 1490, 2'000'000);
  runs.Put("s");
  EXPECT_THAT(Said().at(0), StartsWith("Sharded is fastest: 188 tokens/s a rank, 1.50"));
  EXPECT_THAT(Said().at(0), EndsWith(" that of replicated."));
  EXPECT_THAT(Said().at(1), StartsWith("Memory of a rank with sharded: 3.00 MB"));
  EXPECT_THAT(Said(), SizeIs(2)) << "the least memory is that of the same split";
}

// Others may have slowed the split that would be the fastest.
TEST_F(ParallelismTest, ADisturbedSplitLeavesNoFastest) {
  Runs runs(store_);
  Add(runs, On(8, 1, "none", 1), 1000, 9'000'000);
  Add(runs, On(8, 1, "full", 1), 1500, 3'000'000);
  Add(runs, On(8, 2, "full", 2), 500, 2'000'000).cores = {1, 0.78, 0};
  runs.Put("s");
  const std::string page = Render(report_, store_, {"s", ReportFormat::kJson}).bytes;
  const auto said = ParseJson(page, "a page").at("panels").at(0).at("conclusion").get<std::vector<std::string>>();
  EXPECT_THAT(said.at(0), StartsWith("The machine was busy, so this page draws no conclusion about time"));
  EXPECT_THAT(said, Each(Not(HasSubstr("fastest"))));
  EXPECT_THAT(said, Contains("The least memory, 2.00 MB, is that of sharded with TP 2."));
  const Rows rows = Answer();
  EXPECT_THAT(Texts(rows, "mark"), Each(Not(HasSubstr("tokens/s"))));
}

TEST_F(ParallelismTest, ASplitThatDidNotFitShowsWhatItWanted) {
  Runs runs(store_);
  Add(runs, On(8, 1, "full", 1), 1500, 3'000'000);
  runs.Add(On(8, 1, "none", 1), RunStatus::kSkippedPredictedOom).evidence["wanted_bytes"] = "9000000";
  runs.Put("s");
  const Rows rows = Answer();
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows.Text(0, "failure"), "predicted out of memory");
  EXPECT_THAT(rows.Number(0, "wanted_bytes"), Optional(9e6));
}

// Predictions err by more than such a lead.
TEST_F(ParallelismTest, ASmallPredictedLeadIsNone) {
  Predict(On(8, 1, "none", 1), 1000);
  Predict(On(8, 1, "full", 1), 1050);
  EXPECT_THAT(Said().at(0), StartsWith("Sharded and replicated are about equally fast: 131 tokens/s a rank"));
  Predict(On(8, 2, "none", 2), 1500);
  EXPECT_THAT(Said().at(0), StartsWith("Replicated with TP 2 is fastest: 188 tokens/s a rank, 1.43"));
}

// Rank 0 alone moves no bytes, so its time says nothing about the split.
TEST_F(ParallelismTest, VirtualRanksLeadNobody) {
  Runs runs(store_);
  Add(runs, On(8, 1, "none", 1), 1000, 9'000'000);
  Add(runs, On(8, 1, "full", 1), 900, 3'000'000);
  Json alone = On(8, 2, "full", 2);
  alone["communicator"] = "virtual";
  Add(runs, alone, 9000, 1'000'000);
  runs.Put("s");
  const Rows rows = Answer();
  EXPECT_EQ(rows.Text(0, "mark"), "most tokens/s");
  EXPECT_EQ(rows.Text(2, "split"), "sharded with TP 2, virtual");
  EXPECT_EQ(rows.Text(2, "speedup"), "");
}

TEST_F(ParallelismTest, TheSampleIsAsTheGoldenHasIt) {
  FillSample();
  ExpectGolden(WithoutIds(Render(report_, store_, {"s", ReportFormat::kMarkdown}).bytes), "parallelism.md");
}

TEST_F(ParallelismTest, OneSplitAloneIsNoPanel) {
  Runs runs(store_);
  Add(runs, On(8, 1, "none", 1), 1000, 9'000'000);
  Add(runs, {{"model", "llama-10m"}}, 500, 9'000'000);
  runs.Put("s");
  EXPECT_EQ(Answer().size(), 0U);
}

}  // namespace
}  // namespace ridgeline::report
