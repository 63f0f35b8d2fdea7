// A job's time limit passes, but perhaps not its point's.
#include <fcntl.h>
#include <sys/stat.h>

#include <gtest/gtest.h>

#include "run/job.h"
#include "run/result.h"
#include "tests/collect/collect_fixture.h"

namespace ridgeline::collect {
namespace {

class CollectTimeouts : public CollectTest {
 protected:
  // A job with a point that may take 100 s and began at `began_s`.
  store::JobRecord Began(int64_t began_s) {
    store::JobRecord job = Submit("rl-1", {points_[0]});
    job.started_unix_ns = 1'000'000'000'000;
    Job file;
    file.key = job.key;
    file.job_dir = job.job_dir;
    file.points = {{points_[0].id, points_[0].spec, 100}};
    WriteFile(JobFile(file), JobText(file));
    const std::filesystem::path spec = PointDir(job.job_dir, points_[0].id) / SpecName(0);
    MakeDirs(spec.parent_path());
    WriteFile(spec, "");
    const timespec began{began_s, 0};
    const timespec times[] = {began, began};
    EXPECT_EQ(::utimensat(AT_FDCWD, spec.c_str(), times, 0), 0);
    return job;
  }
  std::map<std::string, std::string> TimeoutAt(int64_t ended_s) {
    return {{"end", "timeout"}, {"message", "past its limit"}, {"ended_unix_s", std::to_string(ended_s)}};
  }
};

TEST_F(CollectTimeouts, ATimeoutBeforeThePointHadItsTimeIsAStart) {
  const std::vector<Collected> ends = End(Began(1540), TimeoutAt(1560));
  EXPECT_EQ(ends.at(0).end, RunEnd(InfrastructureReason::kStart));
  EXPECT_EQ(ends.at(0).message,
            "job rl-1 ended (infrastructure (start)) without a result of this point: its job's time was up after 20 "
            "s of the 1 min 40 s that this point may take; the point began 9 min 00 s after its job");
}

TEST_F(CollectTimeouts, ATimeoutAfterThePointHadItsTimeIsThePoints) {
  EXPECT_EQ(End(Began(1005), TimeoutAt(1160)).at(0).end, RunEnd(RunStatus::kTimeout));
}

// As in a pod, whose folder is not here: the point began with its job at the earliest.
TEST_F(CollectTimeouts, APointWithoutABeginCountsFromItsJobsStart) {
  const store::JobRecord job = Began(1540);
  std::filesystem::remove(PointDir(job.job_dir, points_[0].id) / SpecName(0));
  EXPECT_EQ(End(job, TimeoutAt(1080)).at(0).end, RunEnd(InfrastructureReason::kStart));
}

TEST_F(CollectTimeouts, APointWithoutABeginThatMayHaveHadItsTimeTimedOut) {
  const store::JobRecord job = Began(1540);
  std::filesystem::remove(PointDir(job.job_dir, points_[0].id) / SpecName(0));
  EXPECT_EQ(End(job, TimeoutAt(1100)).at(0).end, RunEnd(RunStatus::kTimeout));
}

TEST_F(CollectTimeouts, WhoseTimesAreUnknownAreThePoints) {
  EXPECT_EQ(End(Began(1540), {{"end", "timeout"}}).at(0).end, RunEnd(RunStatus::kTimeout));
}

TEST_F(CollectTimeouts, APointThatWasToldToEndWithinItsTimeIsAStart) {
  const store::JobRecord job = Began(1540);
  RunResult told = samples::Result(points_[0].id);
  SetEnd(InfrastructureReason::kPreempted, told);
  told.started_unix_ns = 1'540'000'000'000;
  told.ended_unix_ns = 1'560'000'000'000;
  WriteResult(job, told);
  EXPECT_EQ(End(job, TimeoutAt(1560)).at(0).end, RunEnd(InfrastructureReason::kStart));
}

}  // namespace
}  // namespace ridgeline::collect
