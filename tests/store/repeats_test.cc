// A point's repeats are separate runs that come one by one, and are one measurement.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "run/step_figures.h"
#include "tests/base/temp_dir.h"
#include "tests/store/samples.h"

namespace ridgeline::store {
namespace {

using samples::Value;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

class RepeatsTest : public testing::Test {
 protected:
  RepeatsTest() {
    point_.spec.repeats = 3;
    point_.spec.warmup_steps = 1;
    point_.spec.steps = 2;
    point_.id = PointId(point_.spec);
    store_.PutSweep(samples::Sweep("s"), {&point_, 1});
  }

  // The next run of the point, with these steps.
  NewResult Next(std::vector<int64_t> steps_ns, const std::string& cpu = "a processor") {
    RunResult result = samples::Result(point_.id);
    result.repeat = 1;
    result.started_unix_ns = ++times_;
    result.ended_unix_ns = times_ + 1;
    result.environment["cpu"] = cpu;
    result.step_ns = {};
    result.step_ns.all_ns = std::move(steps_ns);
    FillStepFigures({result.step_ns.all_ns.begin() + 1, result.step_ns.all_ns.end()}, result);
    return {result, "", 0, {}};
  }
  int64_t Add(const NewResult& result) { return std::ssize(store_.AddResults({&result, 1})); }
  Cell Shown(const std::string& column) { return Value(store_, "SELECT " + column + " FROM runs"); }

  TempDir dir_;
  Store store_ = Store::Open(dir_ / "ridgeline.db", Store::Mode::kReadWrite);
  Point point_ = samples::Points(1).front();
  int64_t times_ = 0;
};

TEST_F(RepeatsTest, StandOnceTheLastHasCome) {
  EXPECT_EQ(Add(Next({900, 100, 120})), 1);
  EXPECT_THAT(store_.RepeatsSoFar("s"), ElementsAre(Pair(point_.id, 1)));
  EXPECT_THAT(store_.FinishedPoints("s"), IsEmpty());
  EXPECT_EQ(Shown("step_median_ns"), Cell(int64_t{110})) << "what there is so far is shown";
  EXPECT_EQ(Add(Next({800, 140, 160})), 1);
  EXPECT_THAT(store_.RepeatsSoFar("s"), ElementsAre(Pair(point_.id, 2)));
  EXPECT_EQ(Add(Next({700, 180, 200})), 1);
  EXPECT_THAT(store_.RepeatsSoFar("s"), IsEmpty());
  EXPECT_THAT(store_.FinishedPoints("s"), ElementsAre(point_.id));
  EXPECT_EQ(Shown("all_steps_ns"), Cell("[900,100,120,140,160,180,200]"));
  EXPECT_EQ(Shown("step_median_ns"), Cell(int64_t{150}));
  EXPECT_EQ(Shown("repeat"), Cell(int64_t{3}));
  EXPECT_EQ(Value(store_, "SELECT count(*) FROM results"), Cell(int64_t{3})) << "every run is kept";
  EXPECT_EQ(Value(store_, "SELECT count(*) FROM measured"), Cell(int64_t{1})) << "and they are one measurement";
  EXPECT_EQ(Add(Next({700, 180, 200})), 0) << "it is finished";
  EXPECT_THAT(store_.Check(), IsEmpty());
}

TEST_F(RepeatsTest, AreDisturbedOnAGpuAsTheWorstOfThem) {
  NewResult first = Next({900, 100, 120});
  first.result.gpu.power_w = 400;
  first.result.gpu.throttled_share = 0.5;
  first.result.gpu.clock_limits = {{"sw_power_cap", 5}};
  first.result.gpu.others = 2;
  Add(first);
  NewResult second = Next({800, 140, 160});
  second.result.gpu.power_w = 500;
  second.result.gpu.throttled_share = 0;
  Add(second);
  EXPECT_EQ(Shown("gpu_power_w"), Cell(450.0));
  EXPECT_EQ(Shown("gpu_throttled_share"), Cell(0.5));
  EXPECT_EQ(Shown("gpu_clock_limits"), Cell(R"({"sw_power_cap":5})"));
  EXPECT_EQ(Shown("gpu_others"), Cell(int64_t{2}));
  EXPECT_EQ(Shown("gpu_energy_j"), Cell()) << "nobody took it";
  EXPECT_THAT(store_.Check(), IsEmpty());
}

TEST_F(RepeatsTest, FiguresOfTheirOwnAreTheMeanOfAll) {
  NewResult first = Next({900, 100, 120});
  first.result.metrics = {{"data_time", {1, "s"}}};
  first.result.printed.mfu = 0.25;
  first.result.memory.device_reserved_bytes = 9;
  Add(first);
  EXPECT_EQ(Shown("run_note"), Cell()) << "all that it had so far";
  NewResult second = Next({800, 140, 160});
  second.result.metrics = {{"data_time", {3, "s"}}, {"other", {5, ""}}};
  second.result.printed.mfu = 0.75;
  second.result.memory.device_reserved_bytes = 7;
  Add(second);
  EXPECT_EQ(Shown("metrics"), Cell(R"({"data_time":{"unit":"s","value":2.0},"other":{"unit":"","value":5.0}})"));
  EXPECT_EQ(Shown("printed_mfu"), Cell(0.5));
  EXPECT_EQ(Shown("device_reserved_bytes"), Cell(int64_t{9}));
  EXPECT_EQ(Shown("measured_steps"), Cell(int64_t{4}));
  EXPECT_THAT(store_.Check(), IsEmpty());
}

TEST_F(RepeatsTest, ARunThatIsFoundAgainIsNoRepeat) {
  const NewResult first = Next({900, 100, 120});
  EXPECT_EQ(Add(first), 1);
  EXPECT_EQ(Add(first), 0);
  EXPECT_EQ(Add(Next({900, 140, 160})), 1);
  EXPECT_EQ(Add(first), 0);
  EXPECT_THAT(store_.RepeatsSoFar("s"), ElementsAre(Pair(point_.id, 2)));
}

TEST_F(RepeatsTest, RepeatsOnAnotherMachineAreNotMixedIn) {
  Add(Next({900, 100, 120}));
  Add(Next({800, 300, 300}, "another processor"));
  EXPECT_EQ(Shown("step_median_ns"), Cell(int64_t{300}));
  EXPECT_EQ(Shown("repeat"), Cell(int64_t{2})) << "it was run twice all the same";
  EXPECT_THAT(CellText(Shown("evidence")), HasSubstr("from another machine or version"));
  Add(Next({700, 200, 200}, "another processor"));
  EXPECT_EQ(Shown("all_steps_ns"), Cell("[800,300,300,200,200]"));
  EXPECT_THAT(store_.FinishedPoints("s"), ElementsAre(point_.id));
}

TEST_F(RepeatsTest, OneThatFailsEndsItsPointUntilItIsTriedAgain) {
  Add(Next({900, 100, 120}));
  NewResult failed = Next({900, 100});
  failed.result.status = RunStatus::kCrashed;
  Add(failed);
  EXPECT_THAT(store_.FinishedPoints("s"), ElementsAre(point_.id));
  EXPECT_EQ(Shown("status"), Cell("crashed"));
  EXPECT_EQ(store_.RetryFailed("s"), 1);
  EXPECT_THAT(store_.RepeatsSoFar("s"), ElementsAre(Pair(point_.id, 1))) << "what was measured stays";
  Add(Next({800, 140, 160}));
  EXPECT_EQ(Shown("all_steps_ns"), Cell("[900,100,120,140,160]"));
}

TEST_F(RepeatsTest, RepeatsOfAnEarlierVersionAreInOneRun) {
  NewResult all = Next({900, 100, 120, 140, 160, 180, 200});
  all.result.repeat = 0;
  EXPECT_EQ(Add(all), 1);
  EXPECT_THAT(store_.FinishedPoints("s"), ElementsAre(point_.id));
}

}  // namespace
}  // namespace ridgeline::store
