#include "driver/pending.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "sweep/expand.h"
#include "sweep/sweep.h"

namespace ridgeline::driver {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

const RunSpec& Spec() {
  static const RunSpec spec =
      sweep::Expand(sweep::ParseSweep("name: test\ndefaults: {model: llama-10m, seq_length: 64}", "s.yaml"))
          .front()
          .spec;
  return spec;
}

// Points of one kind, in planned jobs of `points` each. On the launcher a point takes `seconds`; 0: none was measured.
class Queue {
 public:
  Queue(int jobs, double seconds, int points = 1) {
    times.Took(predict::RelativeCost(Spec()), seconds);
    for (int i = 0; i < jobs; ++i) {
      Job job;
      job.sweep = "test";
      for (int j = 0; j < points; ++j) job.points.push_back({std::to_string(i * points + j), Spec(), 60});
      pending.Add(std::move(job));
    }
  }

  // Takes all jobs; each ends before the next is taken. Returns the number of points of each job.
  std::vector<int64_t> TakeAll() {
    std::vector<int64_t> sizes;
    while (!pending.empty()) {
      const Job job = pending.Take(options);
      EXPECT_EQ(job.sweep, "test");
      for (const JobPoint& point : job.points) EXPECT_EQ(point.id, std::to_string(taken++)) << "in order, each once";
      sizes.push_back(static_cast<int64_t>(job.points.size()));
      pending.JobEnded(sizes.back());
    }
    return sizes;
  }

  plan::PlanOptions options;
  predict::TimeModel times;
  PendingJobs pending{times};
  int taken = 0;
};

TEST(PendingJobs, OnePointAJobWherePointsTakeASecondOrMore) {
  EXPECT_THAT(Queue(4, 1).TakeAll(), ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(Queue(3, 90).TakeAll(), ElementsAre(1, 1, 1));
}

TEST(PendingJobs, OnePointAJobUntilOneWasMeasured) { EXPECT_THAT(Queue(3, 0).TakeAll(), ElementsAre(1, 1, 1)); }

TEST(PendingJobs, DoublesForShortPointsToABound) {
  EXPECT_THAT(Queue(511, 0.001).TakeAll(), ElementsAre(1, 2, 4, 8, 16, 32, 64, 128, 128, 128));
}

TEST(PendingJobs, AimsAtAboutASecondAJob) {
  Queue world(57, 0.1);
  EXPECT_THAT(world.TakeAll(), ElementsAre(1, 2, 4, 8, 10, 10, 10, 10, 2));
}

TEST(PendingJobs, GoesBackToOneWherePointsBecomeLong) {
  Queue world(40, 0.1);
  for (int i = 0; i < 4; ++i)
    world.pending.JobEnded(static_cast<int64_t>(world.pending.Take(world.options).points.size()));
  world.taken = 15;
  for (int i = 0; i < 100; ++i) world.times.Took(predict::RelativeCost(Spec()), 0.6);
  EXPECT_THAT(world.TakeAll(), Each(1));
}

TEST(PendingJobs, PlannedBundlesAreNeverCut) {
  EXPECT_THAT(Queue(3, 10, 4).TakeAll(), ElementsAre(4, 4, 4));
  EXPECT_THAT(Queue(4, 0.001, 4).TakeAll(), ElementsAre(4, 8, 4));
}

TEST(PendingJobs, ShortPointsThatAskForOtherThingsShareNoJob) {
  predict::TimeModel times;
  times.Took(predict::RelativeCost(Spec()), 0.001);
  PendingJobs pending(times);
  for (const char* partition : {"a", "a", "b", "b", "b", "a"}) {
    Job job;
    job.config = {{"slurm", {{"partition", partition}}}};
    job.points.push_back({partition, Spec(), 60});
    pending.Add(std::move(job));
  }
  pending.JobEnded(10);
  std::vector<size_t> sizes;
  while (!pending.empty()) sizes.push_back(pending.Take({}).points.size());
  EXPECT_THAT(sizes, ElementsAre(2, 3, 1));
}

TEST(PendingJobs, JobsStayAsPlannedWhereNoneIsSaidToHaveEnded) {
  Queue world(30, 0.001);
  for (int i = 0; i < 30; ++i) EXPECT_EQ(world.pending.Take(world.options).points.size(), 1);
  EXPECT_TRUE(world.pending.empty());
}

}  // namespace
}  // namespace ridgeline::driver
