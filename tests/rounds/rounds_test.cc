// Searches, and `batch_size: max` that runs out of memory, with a launcher in this process: what runs, in which order,
// and what an interruption costs.
#include "rounds/rounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "driver/cost.h"
#include "run/names.h"
#include "sweep/expand.h"
#include "tests/driver/world.h"

namespace ridgeline::rounds {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class SearchWorld : public driver::World {
 public:
  SearchWorld() {
    launcher.on_poll = [this](FakeLauncher::Entry& entry) {
      for (const JobPoint& point : DecodeJob(ReadJsonFile(entry.job.job_file), entry.job.job_file.string()).points) {
        RunResult result = run(point.spec);
        result.point_id = point.id;
        result.repeat = point.repeat;
        if (result.status != RunStatus::kOk) result.message = "because";
        MakeDirs(entry.job.job_dir);
        ResultsWriter(entry.job.job_dir).Append(result);
        ++measured[point.id];
        ran.push_back(point.spec);
      }
      entry.phase = launch::JobPhase::kEnded;
      entry.evidence = bill;
    };
  }

  sweep::Sweep Sweep() const {
    return sweep::ParseSweep("name: " + name + "\ndefaults: {model: llama-5m, seq_length: 64}\n" + yaml, "test.yaml");
  }

  RoundsResult Search(int64_t at_once = 1) {
    observer = driver::RecordingObserver();
    store::Store store = OpenStore();
    driver::KillableClock clock(step);
    sweep::Sweep sweep = Sweep();
    if (describe) sweep.launch.describe = std::make_shared<const sweep::DescribeJob>(describe);
    return RunInRounds(std::move(sweep), options,
                       {store, launcher, clock,
                        [this](const RunSpec& spec) {
                          return predict::MemoryForecast{forecast ? forecast(spec) : 1000, {}};
                        },
                        observer, [this] { return interrupts ? interrupts() : 0; }},
                       at_once);
  }

  std::vector<int64_t> BatchSizesRun() const {
    std::vector<int64_t> sizes;
    for (const RunSpec& spec : ran) sizes.push_back(spec.batch_size);
    return sizes;
  }

  std::string name = "test";
  std::function<RunResult(const RunSpec&)> run;
  std::vector<RunSpec> ran;
  std::map<std::string, std::string> bill;  // evidence of each ended job
};

RunResult Giving(double tokens_per_s) {
  RunResult result;
  result.status = RunStatus::kOk;
  result.throughput.steady_tokens_per_s = tokens_per_s;
  return result;
}

RunResult Ending(RunStatus status) {
  RunResult result;
  result.status = status;
  return result;
}

// The processor time of a step of this engine for each of 60 points, which was measured once and stored.
class MeasuredGrid {
 public:
  MeasuredGrid() {
    std::istringstream lines(ReadFile(RIDGELINE_SOURCE_DIR "/tests/search/measured_grid.csv"));
    std::string line;
    std::getline(lines, line);
    while (std::getline(lines, line)) {
      std::istringstream cells(line);
      std::string batch_size, checkpointing, precision, seconds;
      std::getline(cells, batch_size, ',');
      std::getline(cells, checkpointing, ',');
      std::getline(cells, precision, ',');
      std::getline(cells, seconds, ',');
      const double tokens_per_s = std::stod(batch_size) * 64 / std::stod(seconds);
      tokens_per_s_[{std::stoll(batch_size), checkpointing, precision}] = tokens_per_s;
      best_ = std::max(best_, tokens_per_s);
    }
  }

  size_t size() const { return tokens_per_s_.size(); }
  double best() const { return best_; }
  double At(const RunSpec& spec) const {
    return tokens_per_s_.at({spec.batch_size, NameOf(spec.checkpointing), std::string(NameOf(spec.precision))});
  }

 private:
  std::map<std::tuple<int64_t, std::string, std::string>, double> tokens_per_s_;
  double best_ = 0;
};

constexpr char kGrid[] =
    "matrix: {batch_size: 1..16*2, checkpointing: [none, selective, full], precision: [fp32, bf16, fp8, mxfp8]}\n"
    "measure: {warmup_steps: 1, steps: 2}\n"
    "search: {maximize: tokens_per_s, over: [batch_size, checkpointing, precision], budget: 15}\n";

// Within half a percent of the truth, the same at each call for the same point.
RunResult Noisy(const MeasuredGrid& grid, const RunSpec& spec, uint64_t seed) {
  const uint64_t mixed = (static_cast<uint64_t>(grid.At(spec) * 1000) + seed) * 0x9E3779B97F4A7C15U;
  const double noise = static_cast<double>(mixed >> 40) / static_cast<double>(1 << 24) - 0.5;
  return Giving(grid.At(spec) * (1 + 0.01 * noise));
}

double BestTried(const MeasuredGrid& grid, const std::vector<RunSpec>& ran) {
  double best = 0;
  for (const RunSpec& spec : ran) best = std::max(best, grid.At(spec));
  return best;
}

TEST(Rounds, ASearchEndsNearTheBestOfAMeasuredGridAfterAQuarterOfItsRuns) {
  const MeasuredGrid grid;
  ASSERT_EQ(grid.size(), 60U);
  for (const uint64_t seed : {1, 2, 3}) {
    SearchWorld world;
    world.yaml = kGrid;
    world.run = [&](const RunSpec& spec) { return Noisy(grid, spec, seed); };
    const RoundsResult result = world.Search();
    EXPECT_GE(BestTried(grid, world.ran), 0.98 * grid.best());
    EXPECT_LE(world.ran.size(), 15U);
    EXPECT_EQ(result.summary.ok, world.Count("SELECT count(DISTINCT point_id) FROM results"))
        << "the sweep's points are those it ran";
    EXPECT_THAT(result.answer.at(0), HasSubstr("search: the best measured is batch_size="));
    EXPECT_THAT(world.observer.notes.at(0), HasSubstr("60 points, at most 15 runs; times are predicted by the work"));
    EXPECT_THAT(world.observer.notes, Contains(HasSubstr("search: run 2 of at most 15: ")));
    const size_t runs = world.ran.size();
    RecordProperty("runs_" + std::to_string(seed), static_cast<int>(runs));
    world.Search();
    EXPECT_EQ(world.ran.size(), runs) << "run again it has its answer";
  }
}

// A search that was killed at any moment is resumed: nothing is measured twice, and it finds the same.
TEST(Rounds, AKilledSearchGoesOnWhereItWas) {
  const MeasuredGrid grid;
  SearchWorld whole;
  whole.yaml = kGrid;
  whole.run = [&](const RunSpec& spec) { return Noisy(grid, spec, 1); };
  int64_t moments = 0;
  whole.step = [&] { ++moments; };
  const RoundsResult expected = whole.Search();
  ASSERT_GT(moments, 40);
  ASSERT_THAT(expected.answer, Contains(HasSubstr("more in turns"))) << "and its end, too, is killed";
  for (const int64_t part : {1, 3, 5, 7}) {
    SearchWorld world;
    world.yaml = kGrid;
    world.run = whole.run;
    int64_t left = moments * part / 8;
    world.step = [&] {
      if (left-- == 0) throw driver::Killed();
    };
    EXPECT_THROW(world.Search(), driver::Killed);
    world.step = nullptr;
    const RoundsResult result = world.Search();
    EXPECT_EQ(result.answer, expected.answer) << "killed after " << part << " eighths";
    EXPECT_EQ(world.measured, whole.measured);
    EXPECT_EQ(world.Count("SELECT count(*) FROM results"), static_cast<int64_t>(whole.ran.size()));
  }
}

constexpr char kThreeThatAreAlike[] =
    "matrix: {batch_size: [1, 2, 4]}\nmeasure: {warmup_steps: 1, steps: 2}\n"
    "search: {maximize: tokens_per_s, budget: 12}\n";

// The best few are measured again for separate campaigns, by a separate sweep. The search's sweep has each point once,
// and keeps its campaign.
TEST(Rounds, KeepsASecondMeasurementBesideTheFirst) {
  SearchWorld world;
  world.yaml = kThreeThatAreAlike;
  std::map<int64_t, int64_t> runs;
  world.run = [&](const RunSpec& spec) { return Giving(spec.batch_size == 4 && runs[4]++ == 0 ? 108 : 100); };
  const RoundsResult result = world.Search();
  EXPECT_EQ(result.summary.ok, 3);
  EXPECT_THAT(world.ran, SizeIs(12));
  EXPECT_EQ(world.Count("SELECT count(*) FROM results"), 12);
  for (const char* campaign : {"default", "default+2", "default+3", "default+4"}) {
    EXPECT_EQ(world.Count(fmt::format("SELECT count(*) FROM results WHERE campaign = '{}'", campaign)), 3) << campaign;
  }
  EXPECT_EQ(world.Count("SELECT count(*) FROM sweep_points WHERE sweep = 'test'"), 3);
  EXPECT_EQ(world.Count("SELECT count(*) FROM sweep_points WHERE sweep = 'test (in turns)'"), 3);
  EXPECT_EQ(world.OpenStore().CurrentCampaign("test"), kDefaultCampaign);
  EXPECT_THAT(world.observer.notes, Contains(HasSubstr("search: run 4 of at most 12: batch_size=4: measured again in "
                                                       "turn 1 with the others near the best; so far 108 tokens/s")));
}

TEST(Rounds, AStopWhileTheBestAreMeasuredAgainIsGoneOnFrom) {
  SearchWorld world;
  world.yaml = kThreeThatAreAlike;
  std::map<int64_t, int64_t> runs;
  world.run = [&](const RunSpec& spec) { return Giving(spec.batch_size == 4 && runs[4]++ == 0 ? 108 : 100); };
  world.options.campaign = "tonight";
  world.interrupts = [&] { return world.ran.size() >= 7 ? 1 : 0; };
  const RoundsResult stopped = world.Search();
  EXPECT_TRUE(stopped.summary.interrupted);
  EXPECT_LT(world.ran.size(), 12U);
  EXPECT_THAT(stopped.answer, Contains(HasSubstr("near the best are still to be measured again")));
  EXPECT_EQ(world.OpenStore().CurrentCampaign("test"), "tonight");
  world.interrupts = nullptr;
  const RoundsResult result = world.Search();
  EXPECT_EQ(result.summary.ok, 3);
  EXPECT_THAT(result.answer, Contains(HasSubstr("measured 3 times more in turns")));
  EXPECT_EQ(world.Count("SELECT count(*) FROM results WHERE status = 'ok'"), 12);
  EXPECT_EQ(world.Count("SELECT count(*) FROM (SELECT 1 FROM results WHERE status = 'ok' GROUP BY point_id, campaign "
                        "HAVING count(*) > 1)"),
            0);
}

// Each job costs 10 USD at most, and in the end.
TEST(Rounds, WhatTurnsCostCountsAgainstASearchsLimit) {
  SearchWorld world;
  const auto limit = [&](int usd) {
    world.yaml = std::string(kThreeThatAreAlike) + "launch: {launcher: fake}\nprice: {node: 10 USD/h, date: 2026-11, " +
                 fmt::format("max_cost: {} USD}}\n", usd);
  };
  const auto spent_usd = [&] {
    store::Store store = world.OpenStore();
    return driver::CostsOf(store, CostsAreOf(world.Sweep(), kDefaultCampaign), world.Sweep().price).usd;
  };
  world.launcher.max_jobs = 1;
  world.launcher.bill = true;
  world.bill = {{"billed_nodes", "1"}, {"billed_s", "3600"}};
  world.describe = [](const sweep::Launch&, const std::string&) {
    sweep::JobDescription job;
    job.billed_nodes = 1;
    job.most_billed_s = 3600;
    return job;
  };
  std::map<int64_t, int64_t> runs;
  world.run = [&](const RunSpec& spec) { return Giving(spec.batch_size == 4 && runs[4]++ == 0 ? 108 : 100); };
  limit(75);
  const RoundsResult stopped = world.Search();
  EXPECT_THAT(stopped.summary.given_up, HasSubstr("another job could pass max_cost, 75.00 USD: 70.00 USD are"));
  EXPECT_THAT(world.ran, SizeIs(7)) << "three, three in a turn, and one in the next";
  EXPECT_DOUBLE_EQ(spent_usd(), 70);
  // A driver is killed while a job of a turn lives. That job counts once.
  limit(120);
  const auto ends = world.launcher.on_poll;
  int left = 20;
  world.launcher.on_poll = [](FakeLauncher::Entry& entry) { entry.phase = launch::JobPhase::kRunning; };
  world.step = [&] {
    if (!world.OpenStore().LiveJobs("test (in turns)").empty() && left-- == 0) throw driver::Killed();
  };
  EXPECT_THROW(world.Search(), driver::Killed);
  world.step = nullptr;
  world.launcher.on_poll = ends;
  EXPECT_EQ(world.Search().summary.given_up, "");
  EXPECT_THAT(world.ran, SizeIs(12));
  EXPECT_DOUBLE_EQ(spent_usd(), 120);
}

constexpr char kBatches[] =
    "matrix: {batch_size: 1..32*2}\nmeasure: {warmup_steps: 1, steps: 2}\n"
    "search: {maximize: fit, over: [batch_size], budget: 6}\n";

TEST(Rounds, APointThatRunsOutOfMemoryTeaches) {
  SearchWorld world;
  world.yaml = std::string(kBatches) + "launch: {memory_limit: 120MB}\n";
  world.forecast = [](const RunSpec& spec) { return spec.batch_size * 1'000'000; };
  world.run = [](const RunSpec& spec) { return spec.batch_size > 4 ? Ending(RunStatus::kOomHost) : Giving(100); };
  const RoundsResult result = world.Search();
  EXPECT_THAT(world.BatchSizesRun(), ElementsAre(16, 8, 4)) << "32 is predicted not to fit";
  EXPECT_THAT(result.answer.at(0), HasSubstr("the best measured is batch_size=4"));
  EXPECT_THAT(result.answer.at(2), HasSubstr("1 predicted not to fit"));
  EXPECT_EQ(result.summary.out_of_memory, 2);
}

TEST(Rounds, TheAnswerMayBeThatNothingFits) {
  SearchWorld world;
  world.yaml = std::string(kBatches) + "launch: {memory_limit: 97MB}\n";
  world.forecast = [](const RunSpec& spec) { return spec.batch_size * 2'000'000; };
  world.run = [](const RunSpec&) { return Giving(100); };
  const RoundsResult result = world.Search();
  EXPECT_THAT(world.ran, SizeIs(0));
  EXPECT_THAT(result.answer.at(0), HasSubstr("nothing was measured"));
  EXPECT_EQ(result.summary.out_of_memory, 1) << "the smallest says so";
}

TEST(Rounds, EarlierMeasurementsCostNoBudget) {
  SearchWorld world;
  world.run = [](const RunSpec& spec) { return Giving(static_cast<double>(spec.batch_size)); };
  world.name = "another";
  world.yaml = "matrix: {batch_size: [1, 2, 32]}\nmeasure: {warmup_steps: 1, steps: 2}\n";
  world.Search();
  ASSERT_THAT(world.ran, SizeIs(3));
  world.name = "test";
  world.yaml = kBatches;
  const RoundsResult result = world.Search();
  EXPECT_THAT(world.ran, SizeIs(3)) << "the largest is measured";
  EXPECT_THAT(result.answer.at(0), HasSubstr("batch_size=32"));
  EXPECT_THAT(result.answer.at(0), HasSubstr("3 points tried, 0 runs by this search"));
}

TEST(Rounds, OnAClusterSeveralPointsRunTogether) {
  const MeasuredGrid grid;
  SearchWorld world;
  world.yaml = kGrid;
  world.launcher.max_jobs = 100;
  world.run = [&](const RunSpec& spec) { return Noisy(grid, spec, 1); };
  const int64_t at_once = SearchedAtOnce(world.launcher, 5);
  EXPECT_EQ(at_once, 5);
  EXPECT_EQ(SearchedAtOnce(world.launcher, 0), 8);
  EXPECT_EQ(SearchedAtOnce(FakeLauncher(), 0), 1);
  world.Search(at_once);
  EXPECT_LE(world.ran.size(), 15U);
  EXPECT_LE(world.launcher.submit_calls, 3);
  EXPECT_GE(BestTried(grid, world.ran), 0.98 * grid.best());
}

TEST(Rounds, ASearchIsNotDetached) {
  SearchWorld world;
  world.yaml = kBatches;
  world.options.detach = true;
  EXPECT_THROW(world.Search(), Error);
}

TEST(Rounds, ALargestBatchThatRunsOutOfMemoryIsLowered) {
  SearchWorld world;
  world.yaml =
      "matrix: {batch_size: max, checkpointing: [none, full]}\nmeasure: {warmup_steps: 1, steps: 2}\n"
      "launch: {memory_limit: 196MB}\n";
  world.forecast = [](const RunSpec& spec) {
    return spec.batch_size * (spec.checkpointing.policy == Checkpointing::Policy::kFull ? 1 : 2) * 1'000'000;
  };
  world.run = [](const RunSpec& spec) { return spec.batch_size > 80 ? Ending(RunStatus::kOomHost) : Giving(100); };
  const RoundsResult result = world.Search();
  EXPECT_THAT(world.BatchSizesRun(), ElementsAre(50, 100, 87, 75));
  EXPECT_EQ(result.summary.ok, 2);
  EXPECT_EQ(result.summary.out_of_memory, 2);
  EXPECT_THAT(world.observer.notes,
              Contains(HasSubstr("batch_size: max is 75 (checkpointing=full), as 100 and 87 ran out of memory")));
  world.Search();
  EXPECT_THAT(world.ran, SizeIs(4)) << "the next run knows it";
  world.yaml = "matrix: {batch_size: [50, 75]}\nmeasure: {warmup_steps: 1, steps: 2}\n";
  world.Search();
  EXPECT_THAT(world.ran, SizeIs(5)) << "50 is a point that was measured";
  const int64_t most = 4;
  world.yaml = "matrix: {batch_size: max}\nmeasure: {warmup_steps: 2, steps: 2}\nlaunch: {memory_limit: 196MB}\n";
  world.run = [](const RunSpec&) { return Ending(RunStatus::kOomHost); };
  world.Search();
  EXPECT_THAT(world.ran, SizeIs(5 + most)) << "and no further";
}

}  // namespace
}  // namespace ridgeline::rounds
