#include "regress/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "regress/point_names.h"
#include "tests/base/temp_dir.h"
#include "tests/regress/measured.h"

namespace ridgeline::regress {
namespace {

using ::testing::ElementsAre;
using testing::FewStepPoints;
using ::testing::IsEmpty;
using testing::Measure;
using testing::Timed;

constexpr int64_t kMs = 1'000'000;

class Compared : public ::testing::Test {
 protected:
  TempDir dir_;
  store::Store store_ = store::Store::Open(dir_.path() / "ridgeline.db", store::Store::Mode::kReadWrite);
  std::vector<Point> points_ = FewStepPoints(2);

  std::vector<ComparedCell> Cells(const std::string& base = "monday", const std::string& head = "tuesday") {
    return MatchSides(ReadSide(store_, {base, {}}), ReadSide(store_, {head, {}}));
  }
  // A column of the table, with one value per cell.
  std::vector<std::string> Column(const std::string& name) {
    const Table table = ComparisonTable(Cells());
    const auto at = std::find(table.columns.begin(), table.columns.end(), name) - table.columns.begin();
    std::vector<std::string> texts;
    for (const auto& row : table.rows) texts.push_back(CellText(row.at(static_cast<size_t>(at))));
    return texts;
  }
  void MeasureBoth(const std::vector<int64_t>& base, const std::vector<int64_t>& head) {
    Measure(store_, "monday", points_, [&](const Point& point) { return Timed(point, base); });
    Measure(store_, "tuesday", points_, [&](const Point& point) { return Timed(point, head); });
  }
};

TEST_F(Compared, RepeatsLeaveAnInterval) {
  MeasureBoth({100 * kMs, 101 * kMs, 99 * kMs}, {110 * kMs, 111 * kMs, 109 * kMs});
  EXPECT_THAT(Column("step_time"), ElementsAre("slower", "slower"));
  const auto ratio = RatioOf(Cells()[0]);
  ASSERT_TRUE(ratio && ratio->low && ratio->high);
  EXPECT_NEAR(ratio->ratio, 1.1, 1e-3);
  EXPECT_NEAR(ratio->base_step_ns, 1e8, 1e4);
  EXPECT_NEAR(ratio->head_step_ns, 1.1e8, 1e4);
  // Standard errors of 1 % / sqrt 3 and 0.9 %, 4 degrees of freedom, Student's t of 2.78.
  EXPECT_NEAR(*ratio->high / ratio->ratio, 1.0217, 1e-3);
  EXPECT_NEAR(*ratio->low * *ratio->high, ratio->ratio * ratio->ratio, 1e-9);
}

TEST_F(Compared, ADifferenceWithinTheNoiseIsNone) {
  MeasureBoth({100 * kMs, 104 * kMs, 96 * kMs}, {101 * kMs, 105 * kMs, 97 * kMs});
  EXPECT_THAT(Column("step_time"), ElementsAre("no difference shown", "no difference shown"));
}

TEST_F(Compared, FasterIsSaidToo) {
  MeasureBoth({100 * kMs, 101 * kMs}, {50 * kMs, 51 * kMs});
  EXPECT_THAT(Column("step_time"), ElementsAre("faster", "faster"));
}

TEST_F(Compared, OneRunHasNoInterval) {
  MeasureBoth({100 * kMs}, {200 * kMs});
  EXPECT_THAT(Column("step_time"), ElementsAre("one run each: no interval", "one run each: no interval"));
  EXPECT_NEAR(RatioOf(Cells()[0])->ratio, 2, 1e-9);
  EXPECT_THAT(Column("ratio_low"), ElementsAre("", ""));
  EXPECT_FALSE(RatioOf(Cells()[0])->low);
}

TEST_F(Compared, OneRunOfASideHasNoInterval) {
  MeasureBoth({100 * kMs, 101 * kMs}, {200 * kMs});
  EXPECT_THAT(Column("step_time"), ElementsAre("one run of head: no interval", "one run of head: no interval"));
}

TEST_F(Compared, TooFewRunsAreSaidAndNoIntervalOfThem) {
  MeasureBoth({100 * kMs, 160 * kMs}, {110 * kMs, 170 * kMs});
  const std::string words = "too few runs for an interval: 2 of base, 2 of head";
  EXPECT_THAT(Column("step_time"), ElementsAre(words, words));
  EXPECT_THAT(Column("ratio_low"), ElementsAre("", ""));
  EXPECT_THAT(Column("ratio_high"), ElementsAre("", ""));
}

TEST_F(Compared, ATrainerWithoutTimesOfStepsHasItsMedian) {
  const auto end = [](const Point& point) {
    RunResult result = Timed(point, {});
    result.step_ns = {{}, 70 * kMs, 0, 0};
    return result;
  };
  Measure(store_, "monday", points_, end);
  Measure(store_, "tuesday", points_, end);
  EXPECT_THAT(Column("base_runs"), ElementsAre("1", "1"));
  EXPECT_NEAR(RatioOf(Cells()[0])->base_step_ns, 7e7, 1);
}

TEST_F(Compared, MemoryGrowsBeyondNoise) {
  Measure(store_, "monday", points_, [&](const Point& point) {
    RunResult result = Timed(point, {kMs});
    result.memory.rss_peak_bytes = 1'000'000'000;
    return result;
  });
  Measure(store_, "tuesday", points_, [&](const Point& point) {
    RunResult result = Timed(point, {kMs});
    result.memory.rss_peak_bytes = point.id == points_[0].id ? 1'200'000'000 : 1'010'000'000;
    return result;
  });
  EXPECT_THAT(Column("memory"), ElementsAre("more", "the same"));
  EXPECT_THAT(Column("head_peak_bytes"), ElementsAre("1200000000", "1010000000"));
}

TEST_F(Compared, AnAcceleratorsMemoryGoesBeforeTheProcesss) {
  Measure(store_, "monday", points_, [&](const Point& point) {
    RunResult result = Timed(point, {kMs});
    result.memory.device_peak_bytes = 4'000'000'000;
    return result;
  });
  Measure(store_, "tuesday", points_, [&](const Point& point) {
    RunResult result = Timed(point, {kMs});
    result.memory.device_peak_bytes = point.id == points_[0].id ? 3'000'000'000 : 0;
    return result;
  });
  EXPECT_THAT(Column("memory"), ElementsAre("less", "the same"));
  EXPECT_THAT(Column("base_peak_bytes"), ElementsAre("4000000000", "1000"));
}

TEST_F(Compared, MemoryIsHeldAgainstWhatCountsTheSame) {
  const auto measure = [&](const char* campaign, const char* kind, int64_t reserved) {
    Measure(store_, campaign, points_, [&](const Point& point) {
      RunResult result = Timed(point, {kMs});
      result.memory.device_peak_bytes = 4'000'000'000;
      result.memory.device_peak_kind = kind;
      result.memory.device_reserved_bytes = point.id == points_[0].id ? reserved : 0;
      return result;
    });
  };
  measure("monday", "allocated", 5'000'000'000);
  measure("tuesday", "NVML", 6'000'000'000);
  EXPECT_THAT(Column("memory"), ElementsAre("more", "the same"));
  EXPECT_THAT(Column("memory_of"), ElementsAre("reserved", "the process"));
}

TEST_F(Compared, FewerStepsThanAskedForAreSaid) {
  const auto measure = [&](const char* campaign, int64_t steps) {
    Measure(store_, campaign, points_, [&](const Point& point) {
      RunResult result = Timed(point, {kMs});
      result.measured_steps = steps;
      return result;
    });
  };
  measure("monday", 2);
  measure("tuesday", points_[0].spec.steps);
  const std::string note = fmt::format("base: steps 2 of {}", points_[0].spec.steps);
  EXPECT_THAT(Column("note"), ElementsAre(note, note));
}

TEST_F(Compared, NewFailuresAreSaid) {
  Measure(store_, "monday", points_, [&](const Point& point) {
    return point.id == points_[0].id ? Timed(point, {kMs}) : samples::Result(point.id, RunStatus::kCrashed);
  });
  Measure(store_, "tuesday", points_, [&](const Point& point) {
    RunResult result = samples::Result(point.id, RunStatus::kOomHost);
    result.environment.clear();  // a failure that names no machine
    return point.id == points_[0].id ? result : Timed(point, {kMs});
  });
  EXPECT_THAT(Column("step_time"), ElementsAre("fails now: out of memory", "failed in base: crashed"));
  EXPECT_THAT(Column("ratio"), ElementsAre("", ""));
  EXPECT_THAT(Column("machine"), ElementsAre("a processor", "a processor"));
}

TEST_F(Compared, SaysWhichResultsAreMissing) {
  Measure(store_, "monday", points_, [&](const Point& point) { return Timed(point, {kMs}); });
  Measure(store_, "tuesday", points_,
          [&](const Point& point) { return samples::Result(point.id, InfrastructureReason::kNode); });
  EXPECT_THAT(Column("step_time"), ElementsAre("missing in head", "missing in head"));
  EXPECT_THAT(ReadSide(store_, {"tuesday", {}}), IsEmpty());
}

TEST_F(Compared, MachinesOfOtherFingerprintsAreNot) {
  Measure(store_, "monday", points_, [&](const Point& point) { return Timed(point, {kMs}); });
  Measure(store_, "tuesday", points_, [&](const Point& point) {
    RunResult result = Timed(point, {kMs});
    result.environment["cpu"] = "another processor";
    return result;
  });
  EXPECT_THAT(Column("step_time"),
              ElementsAre("missing in head", "missing in base", "missing in head", "missing in base"));
  EXPECT_THAT(ShortComparisonTable(Cells()).columns.back(), "machine");
}

TEST_F(Compared, MeasurementsOfOneCommitArePutTogether) {
  const std::string commit(40, 'a');
  Measure(store_, "monday", points_, [&](const Point& point) { return Timed(point, {100 * kMs}, commit); });
  Measure(store_, "tuesday", points_, [&](const Point& point) { return Timed(point, {102 * kMs}, commit); });
  Measure(store_, "wednesday", points_, [&](const Point& point) { return Timed(point, {kMs}, commit + "-changed"); });
  const std::vector<SideCell> cells = ReadSide(store_, {{}, commit});
  ASSERT_EQ(cells.size(), 2);
  EXPECT_EQ(cells[0].log_step_times.size(), 2);
}

TEST_F(Compared, ASideWithoutANameIsTheNewest) {
  MeasureBoth({100 * kMs}, {200 * kMs});
  const std::vector<SideCell> newest = ReadSide(store_, {});
  ASSERT_EQ(newest.size(), 2);
  EXPECT_EQ(newest[0].point_id, points_[0].id) << "in the sweep's order";
  EXPECT_EQ(newest[0].log_step_times.size(), 1);
}

TEST(PointNames, SayWhatDiffersOnce) {
  EXPECT_THAT(PointNames(std::vector<std::string>{}), IsEmpty());
  EXPECT_THAT(PointNames(std::vector<std::string>{R"({"model": "a", "seed": 1, "version": 1})"}),
              ElementsAre("model=a"));
  EXPECT_THAT(PointNames(std::vector<std::string>{R"({"model": "a", "layers": 2, "seed": 1})",
                                                  R"({"model": "b", "layers": 4, "seed": 1})",
                                                  R"({"model": "b", "layers": 4, "seed": 2, "own": {"zero": 1}})"}),
              ElementsAre("model=a, seed=1", "model=b, seed=1", "model=b, seed=2, zero=1"));
  EXPECT_THAT(PointNames(std::vector<std::string>{R"({"model": "a", "precision": "fp32"})",
                                                  R"({"model": "b", "precision": "bf16"})"}),
              ElementsAre("model=a, precision=fp32", "model=b, precision=bf16"));
}

}  // namespace
}  // namespace ridgeline::regress
