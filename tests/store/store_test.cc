#include "store/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "run/result.h"
#include "tests/base/temp_dir.h"
#include "tests/store/samples.h"

namespace ridgeline::store {
namespace {

using samples::Value;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;
using testing::UnorderedElementsAre;

class StoreTest : public testing::Test {
 protected:
  TempDir dir_;
  std::filesystem::path file_ = dir_ / "ridgeline.db";
  Store store_ = Store::Open(file_, Store::Mode::kReadWrite);
  std::vector<Point> points_ = samples::Points(4);
};

TEST_F(StoreTest, KeepsASweepAndItsPointsInOrder) {
  std::swap(points_[0], points_[3]);
  store_.PutSweep(samples::Sweep("s"), points_);
  const Table table = store_.Query("SELECT point_id FROM sweep_points WHERE sweep = 's' ORDER BY ordinal");
  ASSERT_THAT(table.rows, SizeIs(4));
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(table.rows[i][0], Cell(points_[i].id));
  const SweepProgress progress = store_.Progress("s");
  EXPECT_EQ(progress.sweep.description, "a sweep");
  EXPECT_EQ(progress.sweep.text, "name: s\n");
  EXPECT_EQ(progress.points, 4);
  EXPECT_EQ(progress.finished(), 0);
  EXPECT_THAT(store_.Check(), IsEmpty());
}

TEST_F(StoreTest, APointsColumnsAreItsFields) {
  RunSpec spec = FamilyDefaults(ModelFamily::kGpt);
  ApplyPreset(*FindPreset("gpt-10m"), spec);
  spec.dropout = 0.1;
  spec.learning_rate = 1.0 / 3;
  spec.data = "/some/file";
  Canonicalize(spec);
  const Point point{PointId(spec), spec};
  store_.PutSweep(samples::Sweep("s"), {&point, 1});
  for (const Field& field : Fields()) {
    const Cell cell = Value(store_, "SELECT " + std::string(field.name) + " FROM points");
    std::visit(
        [&](const auto& value) {
          if constexpr (std::is_same_v<std::decay_t<decltype(value)>, bool>) {
            EXPECT_EQ(cell, Cell(static_cast<int64_t>(value))) << field.name;
          } else {
            EXPECT_EQ(cell, Cell(value)) << field.name;
          }
        },
        ValueOf(spec, field));
  }
}

TEST_F(StoreTest, AnEditedSweepHasItsNewPointsAndKeepsOldResults) {
  store_.PutSweep(samples::Sweep("s"), points_);
  samples::RunJob(store_, "rl-1", "s", points_, RunStatus::kOk);
  SweepRecord edited = samples::Sweep("s");
  edited.description = "another";
  edited.created_unix_ns = 99;
  store_.PutSweep(edited, std::span(points_).subspan(1, 2));
  const SweepProgress progress = store_.Progress("s");
  EXPECT_EQ(progress.sweep.description, "another");
  EXPECT_EQ(progress.sweep.created_unix_ns, 5);
  EXPECT_EQ(progress.points, 2);
  EXPECT_EQ(progress.ok, 2);
  EXPECT_EQ(Value(store_, "SELECT count(*) FROM results"), Cell(int64_t{4}));
  EXPECT_EQ(Value(store_, "SELECT count(*) FROM runs"), Cell(int64_t{4}));
  EXPECT_EQ(Value(store_, "SELECT count(*) FROM sweep_runs WHERE sweep = 's'"), Cell(int64_t{2}));
}

TEST_F(StoreTest, EachPointsProgressIsThatOfItsOwnSetup) {
  const std::string own = SetupOf({}, 4);
  const auto setup_of = [&](const Point& point) { return point.id == points_[1].id ? own : DefaultSetup(); };
  store_.PutSweep(samples::Sweep("s"), std::span(points_).first(3), setup_of);
  samples::RunJob(store_, "rl-1", "s", {points_[0], points_[1]}, RunStatus::kCrashed);
  EXPECT_THAT(store_.FinishedPoints("s"), ElementsAre(points_[0].id)) << "the other was measured with another setup";
  JobRecord job = samples::Job("rl-2", "s", {points_[1]});
  job.measured_as.setup = own;
  store_.RecordIntents({&job, 1});
  EXPECT_EQ(store_.Progress("s").live, 1);
  const NewResult result{samples::Result(points_[1].id), "rl-2", 2};
  store_.AddResults({&result, 1});
  store_.SetJobState("rl-2", JobRecord::State::kEnded, {}, 30);
  EXPECT_THAT(store_.FinishedPoints("s"), ElementsAre(points_[0].id, points_[1].id));
  EXPECT_EQ(Value(store_, "SELECT count(*) FROM sweep_runs WHERE sweep = 's'"), Cell(int64_t{2}));
  EXPECT_EQ(Value(store_, "SELECT group_concat(cpus, ' ') FROM (SELECT cpus FROM sweep_runs ORDER BY ordinal)"),
            Cell("0 4"));
  EXPECT_EQ(store_.RetryFailed("s"), 1);
  store_.PutSweep(samples::Sweep("s"), std::span(points_).first(3));
  EXPECT_THAT(store_.FinishedPoints("s"), ElementsAre(points_[1].id)) << "as it was measured with the sweep's setup";
  EXPECT_THAT(store_.Check(), IsEmpty());
}

// The columns of a run that reports share.
TEST_F(StoreTest, ARunSaysWhatReportsAskOfIt) {
  store_.PutSweep(samples::Sweep("s"), std::span(points_).first(2));
  RunResult full = samples::Result(points_[0].id, RunStatus::kOomHost);
  full.evidence = {{"wanted_bytes", "900"}, {"available_bytes", "700"}};
  const std::vector<NewResult> results = {{full, ""}, {samples::Result(points_[1].id), ""}};
  store_.AddResults(results);
  const Table runs = store_.Query(
      "SELECT out_of_memory, wanted_bytes, available_bytes, too_few, policy_rank FROM runs "
      "WHERE (point_id, setup) IN (SELECT point_id, setup FROM sweep_cells WHERE sweep = 's') ORDER BY status DESC");
  ASSERT_EQ(runs.rows.size(), 2U);
  EXPECT_EQ(runs.rows[0][0], Cell(int64_t{1}));
  EXPECT_EQ(runs.rows[0][1], Cell(int64_t{900}));
  EXPECT_EQ(runs.rows[0][2], Cell(int64_t{700}));
  EXPECT_EQ(runs.rows[0][3], Cell(int64_t{0}));
  EXPECT_EQ(runs.rows[1][0], Cell(int64_t{0}));
  EXPECT_EQ(runs.rows[1][1], Cell());
  EXPECT_EQ(runs.rows[1][2], Cell());
  EXPECT_EQ(runs.rows[1][3], Cell(int64_t{1})) << "of three measured steps";
  EXPECT_EQ(runs.rows[1][4], Cell(int64_t{0})) << "nothing is computed again";
}

TEST_F(StoreTest, APointOfTwoSweepsIsPaidForOnce) {
  store_.PutSweep(samples::Sweep("a"), std::span(points_).first(3));
  store_.PutSweep(samples::Sweep("b"), std::span(points_).last(3));
  samples::RunJob(store_, "rl-1", "a", {points_[0], points_[1]}, RunStatus::kOk);
  EXPECT_THAT(store_.FinishedPoints("a"), ElementsAre(points_[0].id, points_[1].id));
  EXPECT_THAT(store_.FinishedPoints("b"), ElementsAre(points_[1].id));
  EXPECT_THAT(store_.Attempts("b"), ElementsAre(Pair(points_[1].id, 1)));
}

TEST_F(StoreTest, WhichEndsStand) {
  for (const std::string& name : StatusNames()) {
    const RunStatus status = StatusFromName(name);
    const bool again = name == "infrastructure" || name == "cancelled";
    EXPECT_EQ(IsFinal(status), !again) << name;
    store_.PutSweep(samples::Sweep(name), points_);
    const bool any = !store_.FinishedPoints(name).empty();
    EXPECT_FALSE(any && store_.FinishedPoints(name).size() != 4) << name;
    samples::RunJob(store_, "rl-" + name, name, points_,
                    again && name != "cancelled" ? RunEnd(InfrastructureReason::kNode) : RunEnd(status));
    EXPECT_EQ(store_.FinishedPoints(name).size(), again ? 0U : 4U) << name;
  }
  EXPECT_THAT(store_.Check(), IsEmpty());
}

TEST_F(StoreTest, RetryFailedAsksForFailuresAgainAndLastsUntilTheNextResult) {
  store_.PutSweep(samples::Sweep("s"), points_);
  samples::RunJob(store_, "rl-1", "s", {points_[0]}, RunStatus::kOk);
  samples::RunJob(store_, "rl-2", "s", {points_[1]}, RunStatus::kOomHost);
  samples::RunJob(store_, "rl-3", "s", {points_[2]}, InfrastructureReason::kLost);
  EXPECT_EQ(store_.RetryFailed("no such sweep"), 0);
  EXPECT_EQ(store_.RetryFailed("s"), 1);
  EXPECT_EQ(store_.RetryFailed("s"), 0);
  {
    Store again = Store::Open(file_, Store::Mode::kReadOnly);  // a killed driver requested it, and the request stays
    EXPECT_THAT(again.FinishedPoints("s"), ElementsAre(points_[0].id));
    EXPECT_EQ(Value(again, "SELECT status FROM runs WHERE seed = 1"), Cell("oom_host"));
  }
  samples::RunJob(store_, "rl-4", "s", {points_[1]}, RunStatus::kTimeout);
  EXPECT_THAT(store_.FinishedPoints("s"), ElementsAre(points_[0].id, points_[1].id));
  EXPECT_EQ(Value(store_, "SELECT status FROM runs WHERE seed = 1"), Cell("timeout"));
  EXPECT_EQ(Value(store_, "SELECT attempt FROM runs WHERE seed = 1"), Cell(int64_t{2}));
  EXPECT_EQ(Value(store_, "SELECT count(*) FROM results"), Cell(int64_t{4}));
  EXPECT_THAT(store_.Check(), IsEmpty());
}

TEST_F(StoreTest, AJobsLife) {
  store_.PutSweep(samples::Sweep("s"), points_);
  const JobRecord intents[] = {samples::Job("rl-1", "s", {points_[0], points_[1]}),
                               samples::Job("rl-2", "s", {points_[2]})};
  store_.RecordIntents(intents);
  std::vector<JobRecord> live = store_.LiveJobs("s");
  ASSERT_THAT(live, SizeIs(2));
  EXPECT_EQ(live[0].key, "rl-1");
  EXPECT_EQ(live[0].launcher, "local");
  EXPECT_EQ(live[0].job_dir, "/nowhere/rl-1");
  EXPECT_EQ(live[0].created_unix_ns, 10);
  EXPECT_EQ(live[0].state, JobRecord::State::kIntent);
  EXPECT_EQ(live[0].native_id, "");
  ASSERT_THAT(live[0].points, SizeIs(2));
  EXPECT_EQ(live[0].points[1].id, points_[1].id);
  EXPECT_EQ(live[0].points[1].attempt, 1);
  EXPECT_FALSE(live[0].points[1].has_result);

  store_.MarkSubmitted("rl-1", "4711", 20);
  store_.SetJobState("rl-1", JobRecord::State::kRunning, {{"node", "n'1\""}}, 25);
  const NewResult result{samples::Result(points_[1].id), "rl-1", 1};
  EXPECT_THAT(store_.AddResults({&result, 1}), ElementsAre(0U));
  live = store_.LiveJobs("s");
  EXPECT_EQ(live[0].state, JobRecord::State::kRunning);
  EXPECT_EQ(live[0].native_id, "4711");
  EXPECT_EQ(live[0].submitted_unix_ns, 20);
  EXPECT_EQ(live[0].ended_unix_ns, 0);
  EXPECT_THAT(live[0].evidence, ElementsAre(Pair("node", "n'1\"")));
  EXPECT_FALSE(live[0].points[0].has_result);
  EXPECT_TRUE(live[0].points[1].has_result);
  EXPECT_EQ(store_.Progress("s").ok, 1);
  EXPECT_EQ(store_.Progress("s").live, 2);

  store_.SetJobState("rl-1", JobRecord::State::kCancelled, {}, 30);
  ASSERT_THAT(store_.LiveJobs("s"), SizeIs(1));
  EXPECT_EQ(store_.LiveJobs()[0].key, "rl-2");
  EXPECT_EQ(Value(store_, "SELECT ended_unix_ns FROM jobs WHERE key = 'rl-1'"), Cell(int64_t{30}));
}

TEST_F(StoreTest, LiveJobsOfAnotherSweepThatHoldOurPointsAreSeen) {
  store_.PutSweep(samples::Sweep("a"), points_);
  store_.PutSweep(samples::Sweep("b"), std::span(points_).last(1));
  store_.PutSweep(samples::Sweep("c"), {});
  const JobRecord job = samples::Job("rl-1", "a", points_);
  store_.RecordIntents({&job, 1});
  EXPECT_THAT(store_.LiveJobs("b"), SizeIs(1));
  EXPECT_EQ(store_.Progress("b").live, 1);
  EXPECT_THAT(store_.LiveJobs("c"), IsEmpty());
}

TEST_F(StoreTest, AnIntentForAPointInALiveJobIsRefusedWhole) {
  store_.PutSweep(samples::Sweep("s"), points_);
  const JobRecord first = samples::Job("rl-1", "s", {points_[0]});
  store_.RecordIntents({&first, 1});
  const JobRecord more[] = {samples::Job("rl-2", "s", {points_[1]}), samples::Job("rl-3", "s", {points_[0]})};
  try {
    store_.RecordIntents(more);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kUsage);
    EXPECT_THAT(e.message(), HasSubstr("rl-1"));
  }
  EXPECT_THAT(store_.LiveJobs(), SizeIs(1));
  EXPECT_THROW(store_.RecordIntents({&first, 1}), Error);  // a key is used once
}

TEST_F(StoreTest, ACancelledJobWithoutResultsFreesItsPoints) {
  store_.PutSweep(samples::Sweep("s"), points_);
  const JobRecord first = samples::Job("rl-1", "s", {points_[0]});
  store_.RecordIntents({&first, 1});
  store_.SetJobState("rl-1", JobRecord::State::kCancelled, {}, 30);
  EXPECT_THAT(store_.Attempts("s"), ElementsAre(Pair(points_[0].id, 1)));
  const JobRecord second = samples::Job("rl-2", "s", {points_[0]});
  store_.RecordIntents({&second, 1});
  EXPECT_EQ(store_.LiveJobs()[0].points[0].attempt, 2);
  EXPECT_THAT(store_.Check(), IsEmpty());
}

TEST_F(StoreTest, AResultIsKeptOnceHoweverOftenItIsAdded) {
  store_.PutSweep(samples::Sweep("s"), points_);
  const JobRecord job = samples::Job("rl-1", "s", points_);
  store_.RecordIntents({&job, 1});
  std::vector<NewResult> results;
  for (const Point& point : points_) results.push_back({samples::Result(point.id), "rl-1", 1});
  EXPECT_THAT(store_.AddResults(std::span(results).first(2)), ElementsAre(0U, 1U));
  results[0].result.status = RunStatus::kCrashed;  // the first result stays
  EXPECT_THAT(store_.AddResults(results), ElementsAre(2U, 3U));
  EXPECT_THAT(store_.AddResults(results), IsEmpty());
  EXPECT_EQ(Value(store_, "SELECT count(*) FROM results"), Cell(int64_t{4}));
  EXPECT_EQ(Value(store_, "SELECT count(*) FROM runs WHERE status = 'ok'"), Cell(int64_t{4}));
}

TEST_F(StoreTest, SaysHowPointsEndedThatAnySweepMeasured) {
  store_.PutSweep(samples::Sweep("s"), points_);
  samples::RunJob(store_, "rl-1", "s", {points_[0]}, RunStatus::kCrashed);
  store_.RetryFailed("s");
  samples::RunJob(store_, "rl-2", "s", {points_[0]}, RunStatus::kOk);
  samples::RunJob(store_, "rl-3", "s", {points_[1]}, RunStatus::kOomHost);
  samples::RunJob(store_, "rl-4", "s", {points_[2]}, InfrastructureReason::kNode);
  std::vector<std::string> ids;
  for (const Point& point : points_) ids.push_back(point.id);
  const std::vector<StandingResult> results = store_.StandingResults(kDefaultCampaign, ids);
  ASSERT_THAT(results, SizeIs(2)) << "what was the infrastructure's does not stand, and one was never run";
  EXPECT_EQ(results[0].point_id, points_[0].id);
  EXPECT_EQ(results[0].status, RunStatus::kOk) << "the latest counts";
  EXPECT_EQ(results[0].steady_tokens_per_s, 1000.5);
  EXPECT_EQ(results[0].all_steps_ns, "[900,500,510]");
  EXPECT_EQ(results[0].setup, DefaultSetup());
  EXPECT_EQ(results[0].sweep, "s");
  EXPECT_EQ(results[1].status, RunStatus::kOomHost);
  EXPECT_THAT(store_.StandingResults("another", ids), IsEmpty());
}

TEST_F(StoreTest, AResultWithoutAJobCountsAsAnAttempt) {
  store_.PutSweep(samples::Sweep("s"), points_);
  const NewResult skipped{samples::Result(points_[0].id, RunStatus::kSkippedPredictedOom), "", 0};
  EXPECT_THAT(store_.AddResults({&skipped, 1}), SizeIs(1));
  EXPECT_THAT(store_.AddResults({&skipped, 1}), IsEmpty());
  EXPECT_THAT(store_.FinishedPoints("s"), ElementsAre(points_[0].id));
  EXPECT_EQ(store_.RetryFailed("s"), 1);
  EXPECT_THAT(store_.FinishedPoints("s"), IsEmpty());
  EXPECT_THAT(store_.AddResults({&skipped, 1}), SizeIs(1));
  EXPECT_EQ(Value(store_, "SELECT attempt FROM latest"), Cell(int64_t{2}));
  samples::RunJob(store_, "rl-1", "s", {points_[1]}, RunStatus::kOk);
  EXPECT_THAT(store_.Check(), IsEmpty());
}

TEST_F(StoreTest, MeasuredPointsAreTheLatestOfALauncherThatWentWell) {
  store_.PutSweep(samples::Sweep("s"), points_);
  samples::RunJob(store_, "a", "s", {points_[0]}, RunStatus::kOk);
  samples::RunJob(store_, "b", "s", {points_[1]}, RunStatus::kCrashed);
  samples::RunJob(store_, "c", "s", {points_[2], points_[3]}, RunStatus::kOk);
  store_.AddResults(std::vector<NewResult>{{samples::Result(points_[1].id), "", 0}});  // without a job
  const std::vector<MeasuredPoint> all = store_.MeasuredPoints("local", 1000);
  ASSERT_THAT(all, SizeIs(3));
  EXPECT_EQ(PointId(all[0].spec), points_[0].id) << "the oldest first";
  EXPECT_EQ(all[0].duration_ns, 100);
  const std::vector<MeasuredPoint> latest = store_.MeasuredPoints("local", 1);
  ASSERT_THAT(latest, SizeIs(1));
  EXPECT_EQ(PointId(latest[0].spec), points_[3].id);
  EXPECT_THAT(store_.MeasuredPoints("slurm", 1000), IsEmpty());
}

TEST_F(StoreTest, MeasuredPointsHaveATime) {
  store_.PutSweep(samples::Sweep("s"), points_);
  const JobRecord job = samples::Job("a", "s", {points_[0]});
  store_.RecordIntents({&job, 1});
  RunResult untimed = samples::Result(points_[0].id);
  untimed.started_unix_ns = 0;
  store_.AddResults(std::vector<NewResult>{{untimed, "a", 1}});
  EXPECT_THAT(store_.MeasuredPoints("local", 1000), IsEmpty());
}

TEST_F(StoreTest, AResultOfNoKnownPointOrJobIsRefused) {
  store_.PutSweep(samples::Sweep("s"), points_);
  const NewResult stranger{samples::Result("0123"), "", 0};
  EXPECT_THROW(store_.AddResults({&stranger, 1}), Error);
  const NewResult jobless[] = {{samples::Result(points_[0].id), "", 0}, {samples::Result(points_[1].id), "rl-9", 1}};
  EXPECT_THROW(store_.AddResults(jobless), Error);
  EXPECT_EQ(Value(store_, "SELECT count(*) FROM results"), Cell(int64_t{0}));
}

TEST_F(StoreTest, EveryStepOfTheLatestResultIsARowOfSeries) {
  const std::vector<Point> points = samples::Points(1);
  store_.PutSweep(samples::Sweep("s"), points);
  RunResult first = samples::Result(points[0].id, InfrastructureReason::kLost);
  first.loss = {7, 6};
  RunResult second = samples::Result(points[0].id, RunStatus::kDiverged);
  second.loss = {9.5, std::numeric_limits<double>::quiet_NaN()};
  second.grad_norm = {1.5};
  store_.AddResults(std::vector<NewResult>{{first, "", 0}});
  store_.AddResults(std::vector<NewResult>{{second, "", 0}});
  const Table table = store_.Query("SELECT figure, step, value FROM series ORDER BY figure, step");
  EXPECT_EQ(table.rows, (std::vector<std::vector<Cell>>{{Cell("grad_norm"), Cell(int64_t{1}), Cell(1.5)},
                                                        {Cell("loss"), Cell(int64_t{1}), Cell(9.5)},
                                                        {Cell("loss"), Cell(int64_t{2}), Cell()}}));
}

TEST_F(StoreTest, EveryFigureOfAResultIsAColumn) {
  store_.PutSweep(samples::Sweep("s"), points_);
  RunResult result = samples::Result(points_[0].id);
  result.hint = "h";
  result.evidence = {{"exit_code", "0"}};
  result.emulated = true;
  result.communicator = "virtual";
  result.provenance = Provenance::kPredicted;
  const NewResult added{result, "", 0};
  store_.AddResults({&added, 1});
  const Table table = store_.Query("SELECT * FROM runs");
  ASSERT_THAT(table.rows, SizeIs(1));
  const auto cell = [&](const std::string& name) {
    const auto it = std::find(table.columns.begin(), table.columns.end(), name);
    return it == table.columns.end() ? Cell("no such column")
                                     : table.rows[0][static_cast<size_t>(it - table.columns.begin())];
  };
  EXPECT_EQ(cell("point_id"), Cell(points_[0].id));
  EXPECT_EQ(cell("status"), Cell("ok"));
  EXPECT_EQ(cell("hint"), Cell("h"));
  EXPECT_EQ(cell("evidence"), Cell(R"({"exit_code":"0"})"));
  EXPECT_EQ(cell("job_key"), Cell());
  EXPECT_EQ(cell("provenance"), Cell("predicted"));
  EXPECT_EQ(cell("emulated"), Cell(int64_t{1}));
  EXPECT_EQ(cell("device"), Cell("cpu"));
  EXPECT_EQ(cell("device_name"), Cell("a processor"));
  EXPECT_EQ(cell("communicator"), Cell("self"));
  EXPECT_EQ(cell("communicator_name"), Cell("virtual"));
  EXPECT_EQ(cell("parameters"), Cell(int64_t{10'000'000}));
  EXPECT_EQ(cell("tokens_per_step"), Cell(int64_t{512}));
  EXPECT_EQ(cell("steady_tokens_per_s"), Cell(1000.5));
  EXPECT_EQ(cell("cold_tokens_per_s"), Cell(900.25));
  EXPECT_EQ(cell("step_median_ns"), Cell(int64_t{505}));
  EXPECT_EQ(cell("step_p95_ns"), Cell(int64_t{510}));
  EXPECT_EQ(cell("step_cv"), Cell(0.01));
  EXPECT_EQ(cell("all_steps_ns"), Cell("[900,500,510]"));
  EXPECT_EQ(cell("loss"), Cell("[9.5,9.25,9.0]"));
  EXPECT_EQ(cell("grad_norm"), Cell("[1.5,1.25,1.0]"));
  EXPECT_EQ(cell("skipped_steps"), Cell(int64_t{2}));
  EXPECT_EQ(cell("planned_peak_bytes"), Cell(int64_t{600}));
  EXPECT_EQ(cell("planned_bytes_by_category"), Cell(R"({"activations":500,"parameters":100})"));
  EXPECT_EQ(cell("planned_parameters_bytes"), Cell(int64_t{100}));
  EXPECT_EQ(cell("planned_logits_bytes"), Cell());
  EXPECT_EQ(cell("rss_peak_bytes"), Cell(int64_t{1000}));
  EXPECT_EQ(cell("model_causal_flops_per_step"), Cell(1e9));
  EXPECT_EQ(cell("model_noncausal_flops_per_step"), Cell(1.5e9));
  EXPECT_EQ(cell("executed_flops_per_step"), Cell(2e9));
  EXPECT_EQ(cell("started_unix_ns"), Cell(int64_t{100}));
  EXPECT_EQ(cell("ended_unix_ns"), Cell(int64_t{200}));
  EXPECT_EQ(cell("command"), Cell("ridgeline-train --spec " + points_[0].id));
  EXPECT_EQ(cell("environment"), Cell(R"({"cpu":"a processor"})"));
  EXPECT_EQ(cell("spec"), Cell(EncodeSpec(points_[0].spec)));

  std::vector<std::string> names = table.columns;
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end()) << "two columns have one name";
}

TEST_F(StoreTest, AMeasurementsNoteSaysItsPeculiarities) {
  store_.PutSweep(samples::Sweep("s"), points_);
  RunResult few = samples::Result(points_[0].id);
  few.measured_steps = 1;
  few.evidence["unit_question"] = "is the unit right?";
  few.memory.device_reserved_bytes = 7000;
  RunResult cold = samples::Result(points_[1].id);
  cold.throughput.steady_tokens_per_s = 0;
  cold.memory.device_peak_bytes = 8000;
  cold.memory.device_peak_kind = "NVML";
  cold.evidence["hung"] = "it was ended";
  cold.memory.device_reserved_bytes = 9000;
  const NewResult results[] = {{few, "", 0}, {cold, "", 0}};
  store_.AddResults(results);
  const std::string asked = std::to_string(points_[0].spec.steps);
  EXPECT_EQ(Value(store_, "SELECT run_note FROM runs WHERE seed = 0"),
            Cell("steps 1 of " + asked + "; is the unit right?"));
  EXPECT_EQ(Value(store_, "SELECT run_note FROM runs WHERE seed = 1"), Cell("no steady steps; it was ended"));
  EXPECT_EQ(Value(store_, "SELECT device_bytes || ' ' || device_bytes_kind FROM runs WHERE seed = 0"),
            Cell("7000 reserved"));
  EXPECT_EQ(Value(store_, "SELECT device_bytes || ' ' || device_bytes_kind FROM runs WHERE seed = 1"),
            Cell("8000 NVML"));
  EXPECT_THAT(store_.Check(), IsEmpty());
}

TEST_F(StoreTest, FiguresThatWereNotTakenAreNull) {
  store_.PutSweep(samples::Sweep("s"), points_);
  RunResult oom = samples::Result(points_[0].id, RunStatus::kOomHost);
  RunResult diverged = samples::Result(points_[1].id);
  diverged.status = RunStatus::kDiverged;
  diverged.loss = {9.5, NAN};
  diverged.throughput.steady_tokens_per_s = NAN;
  diverged.step_ns.cv = 0;
  const NewResult results[] = {{oom, "", 0}, {diverged, "", 0}};
  store_.AddResults(results);
  EXPECT_EQ(Value(store_,
                  "SELECT count(*) FROM runs WHERE steady_tokens_per_s IS NULL AND status = 'oom_host' AND "
                  "step_cv IS NULL AND rss_peak_bytes IS NULL AND planned_peak_bytes IS NULL"),
            Cell(int64_t{1}));
  EXPECT_EQ(Value(store_, "SELECT loss FROM runs WHERE seed = 1"), Cell("[9.5,null]"));
  EXPECT_EQ(Value(store_, "SELECT steady_tokens_per_s FROM runs WHERE seed = 1"), Cell());
  EXPECT_EQ(Value(store_, "SELECT step_cv FROM runs WHERE seed = 1"), Cell(0.0));
  EXPECT_THAT(store_.Check(), IsEmpty());
}

TEST_F(StoreTest, RunsOfOneMachineShareTheirEnvironment) {
  store_.PutSweep(samples::Sweep("s"), points_);
  samples::RunJob(store_, "rl-1", "s", points_, RunStatus::kOk);
  EXPECT_EQ(Value(store_, "SELECT count(*) FROM environments"), Cell(int64_t{1}));
  EXPECT_EQ(Value(store_, "SELECT count(DISTINCT command) FROM runs"), Cell(int64_t{4}));
}

TEST_F(StoreTest, TextIsKeptAsTextWhateverItHolds) {
  const std::string nasty = "'); DROP TABLE results; --\"`$(rm)\n\t\\ <script> \xf0\x9f\x8f\x94";
  SweepRecord sweep = samples::Sweep(nasty);
  sweep.description = sweep.text = sweep.file = nasty;
  RunSpec spec = points_[0].spec;
  spec.data = nasty;
  const Point point{PointId(spec), spec};
  store_.PutSweep(sweep, {&point, 1});
  JobRecord job = samples::Job(nasty, nasty, {point});
  job.launcher = nasty;
  job.job_dir = nasty;
  store_.RecordIntents({&job, 1});
  store_.MarkSubmitted(nasty, nasty, 20);
  RunResult result = samples::Result(point.id);
  result.message = result.hint = result.device = result.communicator = nasty;
  result.evidence = {{nasty, nasty}};
  result.environment = {{nasty, nasty}, {"command", nasty}};
  result.memory.by_category = {{nasty, 1}};
  const NewResult added{result, nasty, 1};
  store_.AddResults({&added, 1});
  store_.SetJobState(nasty, JobRecord::State::kRunning, {{nasty, nasty}}, 30);

  const JobRecord live = store_.LiveJobs(nasty).at(0);
  EXPECT_EQ(live.key, nasty);
  EXPECT_EQ(live.native_id, nasty);
  EXPECT_EQ(live.evidence, (std::map<std::string, std::string>{{nasty, nasty}}));
  EXPECT_EQ(store_.Progress(nasty).sweep.text, nasty);
  EXPECT_EQ(Value(store_, "SELECT message FROM runs"), Cell(nasty));
  EXPECT_EQ(Value(store_, "SELECT data FROM runs"), Cell(nasty));
  EXPECT_EQ(Value(store_, "SELECT command FROM runs"), Cell(nasty));
  EXPECT_THAT(store_.FinishedPoints(nasty), ElementsAre(point.id));
  EXPECT_THAT(store_.FinishedPoints("' OR 1=1 --"), IsEmpty());
  EXPECT_EQ(store_.RetryFailed("' OR 1=1 --"), 0);
  EXPECT_THAT(store_.Check(), IsEmpty());
}

TEST_F(StoreTest, BytesThatAreNoTextBreakNothing) {
  store_.PutSweep(samples::Sweep("s"), points_);
  RunResult result = samples::Result(points_[0].id, RunStatus::kCrashed);
  result.message = std::string("a\0b\xff", 4);
  result.evidence = {{"log_tail", "\xc3\x28\x80"}};
  const NewResult added{result, "", 0};
  store_.AddResults({&added, 1});
  EXPECT_THAT(store_.Check(), IsEmpty());
  EXPECT_EQ(Value(store_, "SELECT message FROM runs"), Cell(result.message));
}

TEST_F(StoreTest, TransactIsAllOrNothing) {
  EXPECT_THROW(store_.Transact([&] {
    store_.PutSweep(samples::Sweep("s"), points_);
    samples::RunJob(store_, "rl-1", "s", points_, RunStatus::kOk);
    throw Error(ErrorKind::kInternal, "stop");
  }),
               Error);
  EXPECT_EQ(Value(store_, "SELECT count(*) FROM sweeps"), Cell(int64_t{0}));
  store_.Transact([&] {
    store_.PutSweep(samples::Sweep("s"), points_);
    samples::RunJob(store_, "rl-1", "s", points_, RunStatus::kOk);
  });
  EXPECT_EQ(store_.Progress("s").ok, 4);
}

TEST_F(StoreTest, SweepsAreListedNewestFirst) {
  SweepRecord old = samples::Sweep("old");
  SweepRecord recent = samples::Sweep("recent");
  recent.created_unix_ns = 6;
  store_.PutSweep(old, points_);
  store_.PutSweep(recent, points_);
  const std::vector<SweepProgress> sweeps = store_.Sweeps();
  ASSERT_THAT(sweeps, SizeIs(2));
  EXPECT_EQ(sweeps[0].sweep.name, "recent");
  EXPECT_EQ(sweeps[1].sweep.name, "old");
  EXPECT_THROW(store_.Progress("other"), Error);
}

TEST_F(StoreTest, ReadersSeeWholeTransactionsWhileAWriterIsAtWork) {
  store_.PutSweep(samples::Sweep("s"), points_);
  Store reader = Store::Open(file_, Store::Mode::kReadOnly);
  store_.Transact([&] {
    samples::RunJob(store_, "rl-1", "s", points_, RunStatus::kOk);
    EXPECT_EQ(Value(reader, "SELECT count(*) FROM runs"), Cell(int64_t{0}));
    EXPECT_EQ(Store::Open(file_, Store::Mode::kReadOnly).Progress("s").live, 0);
  });
  EXPECT_EQ(Value(reader, "SELECT count(*) FROM runs"), Cell(int64_t{4}));
  EXPECT_THROW(reader.PutSweep(samples::Sweep("t"), points_), Error);  // a reader cannot write
}

TEST_F(StoreTest, UnknownFiguresOfAModelAreNull) {
  std::vector<Problem> problems;
  const auto point = [&](const Json& more) {
    Json values = {{"model", "a name"}, {"trainer", "mine"}};
    if (!more.is_null()) values.update(more);
    const RunSpec spec = BuildSpec(values, problems);
    EXPECT_THAT(problems, IsEmpty());
    return Point{PointId(spec), spec};
  };
  const std::vector<Point> points = {point({}), point({{"parameters", 7}, {"layers", 3}}), point({{"parameters", 8}})};
  store_.PutSweep(samples::Sweep("s"), points);
  const JobRecord job = samples::Job("rl-1", "s", points);
  store_.RecordIntents({&job, 1});
  std::vector<NewResult> results;
  for (const Point& of : points) {
    RunResult result = samples::Result(of.id);
    result.parameters = of.id == points[2].id ? 9 : 0;
    results.push_back({result, "rl-1", 1});
  }
  store_.AddResults(results);
  const auto value = [&](size_t i, const char* column) {
    return Value(store_, fmt::format("SELECT {} FROM runs WHERE point_id = '{}'", column, points[i].id));
  };
  EXPECT_EQ(value(0, "model"), Cell("a name"));
  for (const char* column : {"layers", "vocab", "tied_head", "experts", "parameters", "flops_per_token"}) {
    EXPECT_EQ(value(0, column), Cell()) << column;
  }
  EXPECT_EQ(value(1, "layers"), Cell(int64_t{3}));
  EXPECT_EQ(value(1, "parameters"), Cell(int64_t{7})) << "as the sweep says";
  EXPECT_EQ(value(2, "parameters"), Cell(int64_t{9})) << "as the trainer says";
  EXPECT_THAT(store_.Check(), IsEmpty());
}

}  // namespace
}  // namespace ridgeline::store
