// The scaling report: compares with the fewest ranks of the same configuration.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/page.h"
#include "run/result.h"
#include "tests/report/sample.h"

namespace ridgeline::report {
namespace {

using report_sample::ExpectGolden;
using report_sample::Runs;
using report_sample::WithoutIds;
using testing::Contains;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::Optional;
using testing::SizeIs;

class ScalingTest : public report_sample::ReportTest {
 protected:
  ScalingTest() : ReportTest("scaling") {}

  static RunResult& Add(Runs& runs, int ranks, const char* shard, double tokens_per_s) {
    RunResult& result = runs.Add({{"model", "llama-10m"}, {"ranks", ranks}, {"shard", shard}});
    result.device = "Example CPU (" + std::to_string(8 / ranks) + " cores)";
    result.throughput.steady_tokens_per_s = tokens_per_s;
    result.memory.planned_peak_bytes = shard == std::string("none") ? 100'000'000 : 160'000'000 / ranks;
    return result;
  }

  void FillSample() {
    Runs runs(store_);
    Add(runs, 1, "none", 1000);
    Add(runs, 2, "none", 1800);
    Add(runs, 4, "none", 3000);
    Add(runs, 2, "full", 1500);
    Add(runs, 4, "full", 3200);
    runs.Put("sample");
  }
};

TEST_F(ScalingTest, SpeedUpAndEfficiencyAreAgainstTheFewestRanks) {
  FillSample();
  const Rows rows = Answer();
  ASSERT_EQ(rows.size(), 5U);
  EXPECT_EQ(rows.Text(2, "run"), "4 ranks, replicated");
  EXPECT_THAT(rows.Number(2, "speedup"), Optional(DoubleNear(3, 1e-9)));
  EXPECT_THAT(rows.Number(2, "efficiency_percent"), Optional(DoubleNear(75, 1e-9)));
  EXPECT_EQ(rows.Text(4, "run"), "4 ranks, sharded");
  EXPECT_THAT(rows.Number(4, "efficiency_percent"), Optional(DoubleNear(80, 1e-9)));
  EXPECT_THAT(Conclude(report_, rows, MakePanels(rows).at(0).rows),
              ElementsAre("With 4 ranks, sharded, throughput is 3.20\xC2\xA0\xC3\x97 that of 1 rank, at an "
                          "efficiency of 80.0\xC2\xA0%.",
                          "That is 3.09\xC2\xA0\xC3\x97 to 3.31\xC2\xA0\xC3\x97: 3.20K tokens/s of all ranks.",
                          "Least memory of a rank: 40.0 MB, with 4 ranks, sharded."));
}

TEST_F(ScalingTest, LinesGoOverRanksOnAxesThatGrowByFactors) {
  FillSample();
  const Rows rows = Answer();
  const LineChart lines = MakeLineChart(report_, report_.charts.at(0), rows, MakePanels(rows).at(0).rows, "c");
  ASSERT_THAT(lines.lines, SizeIs(2));
  EXPECT_THAT(lines.at, ElementsAre(1, 2, 4));
  EXPECT_TRUE(lines.log && lines.log_x);
  EXPECT_EQ(lines.lines[1].legend, "sharded");
  EXPECT_THAT(lines.lines[1].points, SizeIs(2));
  // A figure's interval is shown in the chart.
  const LinePoint& four = lines.lines[0].points[2];
  EXPECT_EQ(four.low, rows.Number(2, "steady_tokens_per_s_low"));
  EXPECT_GT(four.high, four.y);
}

TEST_F(ScalingTest, ProcessorsAreNotComparedWithEachOther) {
  Runs runs(store_);
  Add(runs, 1, "none", 1000);
  Add(runs, 2, "none", 1800).device = "Another CPU (4 cores)";
  runs.Put("s");
  const Rows rows = Answer();
  EXPECT_THAT(rows.Number(1, "efficiency_percent"), Optional(DoubleNear(100, 1e-9)));
}

TEST_F(ScalingTest, VersionsOfTheTrainerAndCampaignsAreNotComparedWithEachOther) {
  Runs runs(store_);
  Add(runs, 1, "none", 1000);
  Add(runs, 2, "none", 1800).environment["git_commit"] = "4567def";
  runs.Put("s");
  Runs night(store_);
  Add(night, 4, "none", 3000);
  night.Put("night", "night-2");
  const Rows rows = Answer();
  ASSERT_EQ(rows.size(), 3U);
  for (const size_t row : {1, 2}) {
    EXPECT_THAT(rows.Number(row, "efficiency_percent"), Optional(DoubleNear(100, 1e-9))) << row;
  }
}

// Rank 0 alone moves no bytes. Its memory is real, but its time says nothing about how ranks scale.
TEST_F(ScalingTest, VirtualRanksAreALineOfTheirOwnAndTheirThroughputIsComparedWithNone) {
  Runs runs(store_);
  const auto add_virtual = [&](int ranks) {
    RunResult& result =
        runs.Add({{"model", "llama-10m"}, {"ranks", ranks}, {"shard", "full"}, {"communicator", "virtual"}});
    result.device = "Example CPU (8 cores)";
    result.throughput.steady_tokens_per_s = 1100 * ranks;
    result.memory.planned_peak_bytes = 160'000'000 / ranks;
  };
  for (const int ranks : {2, 8}) add_virtual(ranks);
  runs.Put("s");
  const auto answers = [&] {
    const Rows rows = Answer();
    return Conclude(report_, rows, MakePanels(rows).at(0).rows);
  };
  EXPECT_THAT(answers(), ElementsAre("With 8 ranks, sharded, virtual, each takes 20.0 MB of planned memory."));
  Add(runs, 1, "full", 1000);
  Add(runs, 2, "full", 1500);
  runs.Put("s");
  EXPECT_THAT(answers(), ElementsAre("With 2 ranks, sharded, throughput is 1.50\xC2\xA0\xC3\x97 that of 1 rank, at an "
                                     "efficiency of 75.0\xC2\xA0%.",
                                     testing::_, "Least memory of a rank: 20.0 MB, with 8 ranks, sharded, virtual."));
  const Rows rows = Answer();
  const LineChart lines = MakeLineChart(report_, report_.charts.at(0), rows, MakePanels(rows).at(0).rows, "c");
  ASSERT_THAT(lines.lines, SizeIs(2));
  EXPECT_EQ(lines.lines[1].legend, "sharded, virtual");
}

TEST_F(ScalingTest, ImagesAreNotComparedWithEachOtherButMoreNodesAre) {
  const auto measure = [&](int ranks, const std::string& image) {
    std::vector<Problem> problems;
    const RunSpec spec = BuildSpec({{"model", "llama-10m"}, {"ranks", ranks}}, problems);
    const Point point = {PointId(spec), spec};
    const MeasurementKey as = {kDefaultCampaign, DumpJson({{"cpus", 0},
                                                           {"kubernetes", {{"gpus", 8}, {"image", image}}},
                                                           {"nodes", ranks},
                                                           {"trainer", Json::array({"ridgeline-train"})}})};
    store_.PutSweep({"s", "", "s.yaml", "name: s\n", 1, as}, std::vector<Point>{point});
    RunResult result;
    result.point_id = point.id;
    result.status = RunStatus::kOk;
    result.device = "Example CPU (8 cores)";
    result.throughput.steady_tokens_per_s = ranks == 1 ? 1000 : 900 * ranks;
    store_.AddResults(std::vector<store::NewResult>{{result, "", 0, as}});
  };
  measure(1, "a:1");
  measure(2, "a:1");
  measure(4, "a:2");
  const Rows rows = Answer();
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_THAT(rows.Number(1, "efficiency_percent"), Optional(DoubleNear(90, 1e-9)));
  EXPECT_THAT(rows.Number(2, "efficiency_percent"), Optional(DoubleNear(100, 1e-9))) << "the first of its image";
}

TEST_F(ScalingTest, ABusyMachineIsSaidBesideWhatItsTimesSay) {
  Runs runs(store_);
  Add(runs, 1, "none", 1000);
  Add(runs, 2, "none", 1800).cores = {1, 0.6, 0};
  runs.Put("s");
  const Rows rows = Answer();
  EXPECT_THAT(Conclude(report_, rows, MakePanels(rows).at(0).rows),
              Contains("The machine was busy: other processes took 60.0\xC2\xA0% of the cores during the run with 2 "
                       "ranks, replicated."));
}

TEST_F(ScalingTest, OneNumberOfRanksShowsNoScaling) {
  Runs runs(store_);
  Add(runs, 2, "none", 1000);
  Add(runs, 2, "full", 1000);
  runs.Put("s");
  EXPECT_EQ(Answer().size(), 0U);
}

TEST_F(ScalingTest, TheSampleIsAsTheGoldenHasIt) {
  FillSample();
  ExpectGolden(WithoutIds(Render(report_, store_, {"sample", ReportFormat::kMarkdown}).bytes), "scaling.md");
}

}  // namespace
}  // namespace ridgeline::report
