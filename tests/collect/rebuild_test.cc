#include "collect/rebuild.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>
#include <vector>

#include "base/files.h"
#include "base/json.h"
#include "collect/collect.h"
#include "run/job.h"
#include "run/results_file.h"
#include "run/spec.h"
#include "sweep/expand.h"
#include "sweep/launch.h"
#include "sweep/sweep.h"
#include "tests/base/temp_dir.h"
#include "tests/store/samples.h"

namespace ridgeline::collect {
namespace {

using samples::Value;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr char kSweep[] = "name: s\ndefaults: {model: llama-10m, seq_length: 64}\nmatrix: {seed: [0, 1, 2]}\n";

// An output folder as runs leave it, and a database without any of it.
class RebuildTest : public testing::Test {
 protected:
  RebuildTest() {
    sweep_ = sweep::ParseSweep(kSweep, "s.yaml");
    points_ = sweep::Expand(sweep_);
    KeepSweep(out_, sweep_);
  }

  // Makes a job's folder. Later calls make later jobs.
  Job Submit(const std::string& key, const std::vector<Point>& points, const std::string& campaign = "default",
             const std::string& launcher = "local") {
    Job job;
    job.key = key;
    job.sweep = "s";
    job.campaign = campaign;
    job.launcher = launcher;
    job.created_unix_ns = ++made_;
    job.job_dir = out_ / "jobs" / key;
    for (const Point& point : points) job.points.push_back({point.id, point.spec, 0});
    MakeDirs(job.job_dir);
    WriteFileAtomic(JobFile(job), DumpJson(EncodeJob(job)));
    return job;
  }
  static void Measured(const Job& job, const Point& point, RunStatus status = RunStatus::kOk) {
    ResultsWriter(job.job_dir).Append(samples::Result(point.id, status));
  }

  Rebuilt Rebuild() { return RebuildFrom(store_, out_, "", 777); }
  std::string States() {
    return CellText(
        Value(store_, "SELECT group_concat(key || ' ' || state, ', ') FROM (SELECT * FROM jobs ORDER BY key)"));
  }
  std::string Ends() {
    return CellText(
        Value(store_,
              "SELECT group_concat(seed || ' ' || status || ' ' || attempt, ', ') FROM (SELECT p.seed, r.status, "
              "r.attempt FROM results AS r JOIN points AS p ON p.id = r.point_id ORDER BY 1, 3)"));
  }

  TempDir dir_;
  const std::filesystem::path out_ = dir_ / "out";
  store::Store store_ = store::Store::Open(dir_ / "ridgeline.db", store::Store::Mode::kReadWrite);
  sweep::Sweep sweep_;
  std::vector<Point> points_;
  int64_t made_ = 0;
};

TEST_F(RebuildTest, JobsWithAllTheirResultsHaveEnded) {
  const Job job = Submit("rl-1", {points_[0], points_[1]});
  Measured(job, points_[0]);
  Measured(job, points_[1], RunStatus::kDiverged);
  const Rebuilt rebuilt = Rebuild();
  EXPECT_THAT(rebuilt.sweeps, ElementsAre("s"));
  EXPECT_EQ(rebuilt.jobs, 1);
  EXPECT_EQ(rebuilt.results, 2);
  EXPECT_EQ(rebuilt.live, 0);
  EXPECT_THAT(rebuilt.problems, IsEmpty());
  EXPECT_EQ(States(), "rl-1 ended");
  EXPECT_EQ(Ends(), "0 ok 1, 1 diverged 1");
  EXPECT_EQ(store_.Progress("s").points, 3);
  EXPECT_EQ(store_.Progress("s").sweep.text, kSweep);
  EXPECT_THAT(store_.Check(), IsEmpty());
  EXPECT_EQ(Rebuild().jobs, 0);
  EXPECT_EQ(Ends(), "0 ok 1, 1 diverged 1");
}

// Nobody knows before the next run what a search would choose next.
TEST_F(RebuildTest, ASearchHasThePointsThatItRan) {
  KeepSweep(out_, sweep::ParseSweep(std::string(kSweep) + "search: {maximize: fit, budget: 2}\n", "s.yaml"));
  const Job job = Submit("rl-1", {points_[0], points_[2]});
  Measured(job, points_[0]);
  Measured(job, points_[2]);
  EXPECT_THAT(Rebuild().problems, IsEmpty());
  EXPECT_EQ(store_.Progress("s").points, 2);
  EXPECT_EQ(store_.Progress("s").ok, 2);
}

TEST_F(RebuildTest, AJobThatMayStillRunIsAnIntentOfTheNextRun) {
  const Job job = Submit("rl-1", {points_[0], points_[1]}, "night", "slurm");
  Measured(job, points_[0]);
  EXPECT_EQ(Rebuild().live, 1);
  EXPECT_EQ(States(), "rl-1 intent");
  EXPECT_EQ(Ends(), "0 ok 1") << "what it has is taken, and nothing is lost";
  const std::vector<store::JobRecord> live = store_.LiveJobs("s");
  ASSERT_THAT(live, SizeIs(1));
  EXPECT_EQ(live[0].launcher, "slurm");
  EXPECT_EQ(live[0].job_dir, job.job_dir);
  EXPECT_EQ(live[0].measured_as.campaign, "night");
  EXPECT_TRUE(live[0].points.at(0).has_result);
  EXPECT_FALSE(live[0].points.at(1).has_result);

  const Rebuilt again = Rebuild();
  EXPECT_EQ(again.jobs + again.results + again.live, 0);
  Measured(job, points_[1]);
  EXPECT_EQ(Rebuild().results, 1);
  EXPECT_EQ(States(), "rl-1 ended");
  EXPECT_EQ(Ends(), "0 ok 1, 1 ok 1");
  EXPECT_THAT(store_.Check(), IsEmpty());
}

TEST_F(RebuildTest, AJobThatALaterOneHasAPointOfIsLost) {
  Submit("rl-1", {points_[0]});
  const Job second = Submit("rl-2", {points_[0]});
  Measured(second, points_[0]);
  EXPECT_EQ(Rebuild().live, 0);
  EXPECT_EQ(States(), "rl-1 lost, rl-2 ended");
  EXPECT_EQ(Ends(), "0 infrastructure 1, 0 ok 2");
  EXPECT_EQ(store_.Progress("s").ok, 1);
}

TEST_F(RebuildTest, IfSeveralJobsEndedEarlyTheLastMayStillRun) {
  Submit("rl-1", {points_[0]});
  Submit("rl-2", {points_[0]});
  EXPECT_EQ(Rebuild().live, 1);
  EXPECT_EQ(States(), "rl-1 lost, rl-2 intent");
}

// A file server may show what a node wrote after the run has stopped waiting for it.
TEST_F(RebuildTest, TakesResultsThatCameSinceAJobEnded) {
  const Job job = Submit("rl-1", {points_[0], points_[1]});
  Measured(job, points_[0]);
  Rebuild();
  const JobToCollect ended{store_.LiveJob("rl-1").value(), store::JobRecord::State::kEnded, {}};
  ASSERT_THAT(Collect(store_, {&ended, 1}, 777), SizeIs(1));
  EXPECT_EQ(Ends(), "0 ok 1, 1 infrastructure 1");
  EXPECT_EQ(Rebuild().results, 0);
  Measured(job, points_[1]);
  EXPECT_EQ(Rebuild().results, 1);
  EXPECT_EQ(Ends(), "0 ok 1, 1 infrastructure 1, 1 ok 2");
  EXPECT_EQ(Rebuild().results, 0);
  EXPECT_EQ(store_.Progress("s").ok, 2);
}

TEST_F(RebuildTest, JobsThatCannotRunOrHaveNoSweepAreLost) {
  Submit("rl-1", {points_[0]}, "default", "");  // a person submitted it
  const Job told = Submit("rl-2", {points_[1]});
  WriteFile(CancelFile(told.job_dir), "");
  Point gone = points_[2];
  gone.spec.seed = 99;
  Canonicalize(gone.spec);
  gone.id = PointId(gone.spec);
  Submit("rl-3", {gone});  // the sweep was edited since
  const Rebuilt rebuilt = Rebuild();
  EXPECT_EQ(rebuilt.live, 0);
  EXPECT_EQ(rebuilt.jobs, 3);
  EXPECT_EQ(States(), "rl-1 lost, rl-2 lost, rl-3 lost");
  EXPECT_THAT(store_.LiveJobs(), IsEmpty());
}

TEST_F(RebuildTest, RebuildsTheSettingsThatALauncherGot) {
  // On Slurm, although the file names no launcher: `run --launcher slurm`.
  sweep_ = sweep::ParseSweep(std::string(kSweep) + "launch: {slurm: {gpus: 8, container: 'a:1'}}\n", "s.yaml");
  KeepSweep(out_, sweep_);
  sweep_.launch.launcher = "slurm";
  Job job = Submit("rl-1", points_, "default", "slurm");
  job.setup = SetupOf(sweep::LaunchOf(sweep_, points_[0]));
  ASSERT_THAT(job.setup, HasSubstr("a:1"));
  WriteFileAtomic(JobFile(job), JobText(job));
  for (const Point& point : points_) Measured(job, point);
  EXPECT_THAT(Rebuild().problems, IsEmpty());
  EXPECT_EQ(Value(store_, "SELECT group_concat(DISTINCT setup) FROM results"), Cell(job.setup));
  EXPECT_THAT(store_.FinishedPoints("s"), SizeIs(3)) << "the next run pays for none of them";
}

TEST_F(RebuildTest, AFolderThatCannotBeReadIsSaidAndTheOthersAreTaken) {
  const Job job = Submit("rl-1", {points_[0]});
  Measured(job, points_[0]);
  Job wrong = Submit("rl-2", {points_[1]});
  wrong.points[0].spec.seed = 5;
  WriteFileAtomic(JobFile(wrong), DumpJson(EncodeJob(wrong)));
  WriteFileAtomic(JobFile(Submit("rl-3", {points_[2]})), "{");
  const Job changed = Submit("rl-4", {points_[2]});
  Json document = ParseJson(JobText(changed), "job");
  document["cpus"] = 17;
  WriteFileAtomic(JobFile(changed), DumpJson(document));
  const Job piped = Submit("rl-5", {points_[2]});
  std::filesystem::remove(JobFile(piped));
  ASSERT_EQ(::mkfifo(JobFile(piped).c_str(), 0600), 0);  // opening it would block for ever
  const Rebuilt rebuilt = Rebuild();
  EXPECT_EQ(rebuilt.jobs, 1);
  ASSERT_THAT(rebuilt.problems, SizeIs(4));
  EXPECT_THAT(rebuilt.problems, testing::Contains(HasSubstr("rl-4/job.json was changed since it was written")));
  EXPECT_THAT(rebuilt.problems, testing::Contains(HasSubstr("rl-5/job.json is a named pipe, not a regular file")));
  EXPECT_THAT(rebuilt.problems, testing::Contains(HasSubstr("is not that of its spec")));
  EXPECT_THAT(rebuilt.problems, testing::Contains(HasSubstr("rl-3/job.json")));
}

}  // namespace
}  // namespace ridgeline::collect
